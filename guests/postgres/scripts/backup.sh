#!/bin/sh
# Dumps the database through the Service, and deletes backups that are no longer needed.
#
# The script renames a dump to its final name only when the dump is complete and has been checked:
# an empty, broken or interrupted dump never replaces a good one. It discards a dump without tables
# if the last backup has tables.
#
# It keeps the newest KEEP backups, the newest of each of the last 24 hours that have a backup, and
# the newest of each of the last 7 days that have one.
#
# Variables: PGHOST, PGUSER, PGPASSWORD, PGDATABASE as for the programs of PostgreSQL; KEEP; BACKUPS
# and OWNER as in common.sh

. "$(dirname "$0")/common.sh"
check_owner "$BACKUPS"
become_postgres "$BACKUPS"
lock_volume "$BACKUPS"
record_owner "$BACKUPS"
cd "$BACKUPS"

# Remove the files of an interrupted run.
rm -f -- *.tmp
for roles in *.roles.sql; do
	[ -e "${roles%.roles.sql}.dump" ] || rm -f -- "$roles"
done
trap 'rm -f -- *.tmp' EXIT

last=$(backups | head -n 1)
number=$(expr "${last%%-*}" + 1 2>/dev/null || echo 1)
name=$(printf '%010d-%s' "$number" "$(date -u +%Y%m%dT%H%M%SZ)")

pg_dump --no-password -Fc -f "$name.dump.tmp" || die "the dump failed: existing backups are unchanged"
[ -s "$name.dump.tmp" ] || die "the dump is empty: existing backups are unchanged"
tables=0
has_tables "$name.dump.tmp" || tables=$?
[ "$tables" != 2 ] || die "the dump cannot be read: existing backups are unchanged"
if [ "$tables" = 1 ] && [ -n "$last" ] && has_tables "$last"; then
	die "the database has no tables, and $last has some: existing backups are unchanged"
fi
# The roles too, because owners and grants refer to them.
if ! pg_dumpall --no-password --roles-only -l "$PGDATABASE" -f "$name.roles.sql.tmp"; then
	say "the roles cannot be dumped: the backup has none"
	rm -f "$name.roles.sql.tmp"
fi
sync_volume "$BACKUPS"
[ ! -e "$name.roles.sql.tmp" ] || mv "$name.roles.sql.tmp" "$name.roles.sql"
mv "$name.dump.tmp" "$name.dump"
sync_volume "$BACKUPS"
say "made $name.dump"

newest=0 hours= hours_kept=0 days= days_kept=0
for dump in $(backups); do
	time=${dump%.dump}
	time=${time#*-}
	day=${time%T*}
	hour=${time%????Z}
	keep=
	if [ "$newest" -lt "$KEEP" ]; then
		newest=$((newest + 1)) keep=yes
	fi
	case " $hours " in
	*" $hour "*) ;;
	*) if [ "$hours_kept" -lt 24 ]; then
		hours="$hours $hour" hours_kept=$((hours_kept + 1)) keep=yes
	fi ;;
	esac
	case " $days " in
	*" $day "*) ;;
	*) if [ "$days_kept" -lt 7 ]; then
		days="$days $day" days_kept=$((days_kept + 1)) keep=yes
	fi ;;
	esac
	[ -n "$keep" ] || rm -f "$dump" "${dump%.dump}.roles.sql"
done
