#!/bin/sh
# Dumps the database as it is served, and keeps what should be kept.
#
# A dump gets its name when it is complete and has been looked at, so one that is empty, broken or
# interrupted never takes the place of a good one; nor does one without tables where the newest
# has some.
#
# Kept are the newest KEEP, of the last 24 hours that have a backup the newest of each,
# and likewise of the last 7 days.
#
# PGHOST, PGUSER, PGPASSWORD, PGDATABASE as the programs of PostgreSQL know them; KEEP; BACKUPS as
# in common.sh

. "$(dirname "$0")/common.sh"
become_postgres "$BACKUPS"
hold "$BACKUPS"
cd "$BACKUPS"

# What an interrupted run has left.
rm -f -- *.tmp
for roles in *.roles.sql; do
	[ -e "${roles%.roles.sql}.dump" ] || rm -f -- "$roles"
done
trap 'rm -f -- *.tmp' EXIT

# Whether a dump has tables; fails if it cannot be read.
has_tables() {
	pg_restore --list "$1" >list.tmp || return 2
	grep -q '^[0-9][0-9]*; [0-9][0-9]* [0-9][0-9]* TABLE ' list.tmp
}

last=$(backups | head -n 1)
number=$(expr "${last%%-*}" + 1 2>/dev/null || echo 1)
name=$(printf '%010d-%s' "$number" "$(date -u +%Y%m%dT%H%M%SZ)")

pg_dump --no-password -Fc -f "$name.dump.tmp" || die "the dump failed: the backups are as they were"
[ -s "$name.dump.tmp" ] || die "the dump is empty: the backups are as they were"
tables=0
has_tables "$name.dump.tmp" || tables=$?
[ "$tables" != 2 ] || die "the dump cannot be read: the backups are as they were"
if [ "$tables" = 1 ] && [ -n "$last" ] && has_tables "$last"; then
	die "the database has no tables, and $last has some: the backups are as they were"
fi
# Beside the database, what its owners and grants refer to.
if ! pg_dumpall --no-password --roles-only -l "$PGDATABASE" -f "$name.roles.sql.tmp"; then
	say "the roles cannot be dumped: the backup has none"
	rm -f "$name.roles.sql.tmp"
fi
settle "$BACKUPS"
[ ! -e "$name.roles.sql.tmp" ] || mv "$name.roles.sql.tmp" "$name.roles.sql"
mv "$name.dump.tmp" "$name.dump"
settle "$BACKUPS"
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
