# Functions for the backups of the original operator, which prepare.sh sources. The original wrote
# plain SQL to backup/NAME.sql. An admin puts that file on the volume of the backups, as NAME.sql or
# backup/NAME.sql; or the volume of the original is mounted at backup. No script changes the file's
# content or deletes it, and it does not count for KEEP.
#
# NAME     the name of the PostgreSQL
# BACKUPS  as in common.sh
# sockets  a temporary directory, also with the socket of the server that prepare.sh starts
#
# The SQL runs as a superuser of the server, as the SQL of other backups does: a user who can write
# to the volume of the backups has the rights of the server's containers.

# Each role that a file refers to and that does not exist costs another run of the file's SQL.
MAX_ROLES=100
ORIGINALS="$NAME.sql backup/$NAME.sql backup/backup/$NAME.sql"

# Lets the user postgres read the files, unless their volume is read-only.
chown_originals() {
	[ "$(id -u)" = 0 ] || return 0
	for original in backup backup/backup $ORIGINALS; do
		chown -h postgres: "$BACKUPS/$original" 2>/dev/null || true
	done
}

# Lists the files that are not empty, newest first. As in the original, an empty file is no backup.
originals() {
	for folder in "$BACKUPS/backup" "$BACKUPS/backup/backup"; do
		[ ! -d "$folder" ] || [ -x "$folder" ] ||
			die "$folder cannot be read as the user $(id -un): change its mode or owner"
	done
	for original in $(cd "$BACKUPS" && ls -t $ORIGINALS 2>/dev/null); do
		if [ -f "$BACKUPS/$original" ] && [ -s "$BACKUPS/$original" ]; then
			echo "$original"
		fi
	done
}

# Fails if a file is empty and new: the original empties its file before it dumps.
wait_for_originals() {
	for original in $ORIGINALS; do
		[ -z "$(find "$BACKUPS/$original" -size 0 -mmin -2 ! -newer "$sockets" 2>/dev/null)" ] ||
			die "$original is empty, and less than 2 minutes old: stop the original operator; prepare starts again"
	done
}

original_has_tables() {
	LC_ALL=C grep -q '^CREATE \(UNLOGGED \|FOREIGN \)*TABLE ' "$BACKUPS/$1"
}

# Returns whether a dump is known to have no tables. One that cannot be read may have some.
is_tableless() {
	tables=0
	has_tables "$BACKUPS/$1" 2>/dev/null || tables=$?
	[ "$tables" = 1 ]
}

# Lists the backups in the order in which prepare.sh tries to restore them. A dump of these scripts
# goes first, unless the file is newer. If a backup has tables, or may have had some before it was
# damaged, those without tables are not listed: these scripts may have dumped a new database before
# the admin put the file there, and an empty database must not hide that the file is damaged.
candidates() {
	dumps=$(backups) || return 1
	files=$(originals) || return 1
	newest=$(printf '%s\n' "$dumps" | head -n 1)
	newer= older= empty= with_tables= tableless=
	for original in $files; do
		if ! original_has_tables "$original" && is_complete "$BACKUPS/$original"; then
			empty="$empty $original"
		elif [ "$BACKUPS/$original" -nt "$BACKUPS/$newest" ] &&
			[ ! "$BACKUPS/$original" -nt "$sockets" ]; then
			# A time in the future is wrong: such a file would always be newer.
			newer="$newer $original"
		else
			older="$older $original"
		fi
	done
	for dump in $dumps; do
		if is_tableless "$dump"; then
			tableless="$tableless $dump"
		else
			with_tables="$with_tables $dump"
		fi
	done
	if [ -n "$newer$with_tables$older" ]; then
		[ -z "$tableless$empty" ] ||
			say "not restored, because they have no tables and another backup may have some:$tableless$empty"
		echo $newer $with_tables $older
	else
		wait_for_originals
		echo $tableless $empty
	fi
}

# Returns whether pg_dump has written a file to its end.
is_complete() {
	tail -n 20 "$1" | LC_ALL=C grep -v -e '^$' -e '^--$' -e '^\\unrestrict [[:alnum:]]*$' |
		tail -n 1 | LC_ALL=C grep -q '^-- PostgreSQL database dump complete$'
}

# Runs a file in one transaction. It has succeeded when psql has also printed the last line of its
# input, which is not in the file: psql ends with 0 where a file ends within data, or at `\q`.
run_original() {
	key=${sockets##*.}
	# The file's own lines \restrict, which an older psql does not know.
	own=$(head -n 20 "$1" | LC_ALL=C sed -n 's/^\\restrict \([[:alnum:]][[:alnum:]]*\)$/\1/p' | head -n 1)
	# psql runs none of its own commands between these two lines, such as `\!` and `\connect`.
	restrict= unrestrict=
	if sql -c "\\restrict $key" -c "\\unrestrict $key" 2>/dev/null; then
		restrict="\\restrict $key" unrestrict="\\unrestrict $key"
	fi
	{
		printf '%s\n' "$restrict"
		LC_ALL=C sed "/^\\\\\(un\)\{0,1\}restrict ${own:-$key}\$/d" "$1" || exit 1
		printf '%s\n' "$unrestrict" "SELECT '$key ' || pg_catalog.current_database();"
	} | PGDATABASE=$POSTGRES_DB PGOPTIONS='-c lc_messages=C' \
		psql -X -q -A -t -v ON_ERROR_STOP=1 --single-transaction -f - \
		-h "$sockets" -p 5432 -U "$POSTGRES_USER" >"$sockets/output" 2>"$sockets/errors" || return 1
	[ "$(tail -n 1 "$sockets/output")" = "$key $POSTGRES_DB" ] || {
		echo "psql did not reach the end of the file" >"$sockets/errors"
		return 1
	}
}

# Creates a role that a file refers to and does not contain, without the right to log in.
create_role() {
	(
		export ROLE="$1"
		sql <<'SQL'
\set role `printenv ROLE`
SELECT format('CREATE ROLE %I NOLOGIN', :'role') \gexec
SQL
	)
}

# Prints why the SQL of a file failed.
say_why() {
	cat "$sockets/errors" >&2
	made=$(head -n 20 "$BACKUPS/$1" | LC_ALL=C sed -n 's/^-- Dumped from database version \([0-9][0-9]*\).*/\1/p')
	if [ "${made:-0}" -gt "$(version)" ]; then
		say "$1 is of PostgreSQL $made and the image is of $(version): set spec.image to version $made"
	fi
}

restore_original() {
	file=$BACKUPS/$1
	is_complete "$file" || {
		say "$1 does not end as pg_dump ends a file: it is incomplete"
		return 1
	}
	before=$(stat -c '%i %s %y' "$file") || return 1
	make_new "" || return 1
	roles=0
	until run_original "$file"; do
		role=$(sed -n 's/^.*ERROR:  role "\(.*\)" does not exist$/\1/p' "$sockets/errors" | head -n 1)
		if [ -z "$role" ] || ! create_role "$role"; then
			say_why "$1"
			return 1
		fi
		roles=$((roles + 1))
		if [ "$roles" -gt "$MAX_ROLES" ]; then
			say "$1 refers to more than $MAX_ROLES roles that do not exist: dump again with --no-owner --no-privileges"
			return 1
		fi
		say "$1 refers to the role $role: created it without the right to log in"
	done
	[ "$(stat -c '%i %s %y' "$file")" = "$before" ] ||
		die "$1 was changed during the restore: stop the original operator; prepare starts again"
	# The SQL may have set another password.
	set_password && stop fast
}
