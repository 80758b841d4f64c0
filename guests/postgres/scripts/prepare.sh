#!/bin/sh
# Creates or restores the database before the server starts:
#
#   data exists                       keeps it; data in the pod only if no other pod served since
#   no data, no backup                creates a new database
#   no data, backups                  restores the newest backup that can be restored; a backup of
#                                     the original operator counts too, see original_backups.sh
#   no data, no backup restorable     fails, and creates no empty database; a backup without tables
#                                     counts only if no other backup may have some
#
# The script creates the database in a temporary directory with a server on a unix socket, and
# renames the directory when it is complete. An interrupted run starts again from the beginning.
# In each case the script sets the password of the role POSTGRES_USER to POSTGRES_PASSWORD.
#
# Variables: POSTGRES_DB, POSTGRES_USER, POSTGRES_PASSWORD; NAME, the name of the PostgreSQL;
# EXISTING, yes if DATA is a claim of the user; HAS_LOCK, yes if serve.sh runs this script; DATA,
# BACKUPS, OWNER and EPHEMERAL as in common.sh

. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/original_backups.sh"
. "$(dirname "$0")/restored_from.sh"

# Fails if a claim of the user holds files that are not of these scripts, for example the database
# of a server that does not take the lock.
check_existing() {
	[ -n "${EXISTING:-}" ] && [ ! -e "$DATA/owner" ] || return 0
	known='lost+found lock owner.lock owner.new pgdata.new'
	[ ! -e "$DATA/lock" ] || known="$known pgdata"
	for entry in "$DATA"/*; do
		name=${entry##*/}
		[ -e "$entry" ] || continue
		case " $known " in
		*" $name "*) ;;
		*) die "the volume of the data has '$(printf %s "$name" | tr -cd '[:alnum:]._-')', which is not of this database: nothing is changed; name an empty claim" ;;
		esac
	done
}

check_existing
check_owner "$DATA"
check_owner "$BACKUPS"
chown_originals
become_postgres "$DATA" "$BACKUPS"
[ -n "$POSTGRES_PASSWORD" ] || die "the password is empty: set it in the Secret"
[ -n "${HAS_LOCK:-}" ] || lock_data
record_owner "$DATA"
record_owner "$BACKUPS"
if [ -n "${EPHEMERAL:-}" ] && ! is_newest; then
	# Another pod has served since, or this pod is new: the newest backup counts.
	rm -rf "$DATA/pgdata.old"
	[ ! -e "$DATA/pgdata" ] || mv "$DATA/pgdata" "$DATA/pgdata.old"
	cat /proc/sys/kernel/random/uuid >"$DATA/turn"
	cp "$DATA/turn" "$BACKUPS/turn.new"
	mv "$BACKUPS/turn.new" "$BACKUPS/turn"
	# A backup of the pod before may still be checked.
	flock "$BACKUPS/lock" true &
	wait "$!"
fi

pgdata=$DATA/pgdata
new=$DATA/pgdata.new
sockets=$(mktemp -d)
started=

# The major version of the image.
version() {
	postgres -V | sed 's/^[^0-9]*\([0-9]*\).*/\1/'
}

# Starts a server on a directory that only this script can reach.
start() {
	pg_ctl -D "$1" -s -w -t 86400 \
		-o "-c listen_addresses='' -c unix_socket_directories='$sockets' -p 5432" start >&2 || return 1
	started=$1
}

stop() {
	[ -n "$started" ] || return 0
	pg_ctl -D "$started" -s -w -t 86400 -m "$1" stop || return 1
	started=
}

clean_up() {
	stop immediate || true
	rm -rf "$sockets"
}
trap clean_up EXIT

sql() {
	psql -X -q -v ON_ERROR_STOP=1 -h "$sockets" -p 5432 -U postgres -d postgres "$@" >&2
}

# Creates the role and sets its password. The server must not log these statements.
set_password() {
	sql <<'SQL'
SET log_statement = 'none';
SET log_min_duration_statement = -1;
SET log_min_error_statement = 'panic';
SET password_encryption = 'scram-sha-256';
\set user `printenv POSTGRES_USER`
\set password `printenv POSTGRES_PASSWORD`
SELECT format('CREATE ROLE %I LOGIN SUPERUSER', :'user')
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'user') \gexec
ALTER ROLE :"user" PASSWORD :'password';
SQL
}

create_database() {
	sql <<'SQL'
\set user `printenv POSTGRES_USER`
\set db `printenv POSTGRES_DB`
SELECT format('CREATE DATABASE %I OWNER %I TEMPLATE template0', :'db', :'user')
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'db') \gexec
SQL
}

# Creates a cluster in the temporary directory, starts it, and creates the role and an empty
# database. $1: a file of roles, or empty.
make_new() {
	rm -rf "$new"
	# Trust local connections: a process in the pod can read the files anyway.
	initdb -D "$new" -U postgres --encoding=UTF8 --data-checksums \
		--auth-local=trust --auth-host=scram-sha-256 >/dev/null || return 1
	echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf" || return 1
	start "$new" || return 1
	if [ -n "$1" ] && [ -s "$1" ]; then
		# The file also contains the roles that initdb created, whose errors are expected.
		sql -v ON_ERROR_STOP=0 -f "$1" 2>/dev/null || true
	fi
	set_password && create_database
}

restore() {
	case "$1" in
	*.sql)
		restore_original "$1"
		return
		;;
	esac
	make_new "$BACKUPS/${1%.dump}.roles.sql" || return 1
	pg_restore --exit-on-error -h "$sockets" -p 5432 -U postgres -d "$POSTGRES_DB" "$BACKUPS/$1" >&2 || return 1
	stop fast
}

# Renames the temporary directory to its final name.
publish() {
	[ -z "$started" ] || stop fast
	sync_volume "$DATA"
	mv "$new" "$pgdata"
	sync_volume "$DATA"
	report_restored_from "$pgdata"
}

if [ -e "$pgdata" ]; then
	[ -s "$pgdata/PG_VERSION" ] || die "$pgdata exists and is not a database: nothing is changed"
	has=$(cat "$pgdata/PG_VERSION")
	is=$(version)
	[ "$has" = "$is" ] ||
		die "the data is of PostgreSQL $has and the image is of $is: set spec.image to version $has"
	start "$pgdata"
	set_password
	stop fast
	report_restored_from "$pgdata"
	say "the data is there"
	exit 0
fi

found=$(candidates)
if [ -z "$found" ]; then
	make_new ""
	publish
	say "there was neither data nor a backup: a new database"
	exit 0
fi

failed=
for backup in $found; do
	if restore "$backup"; then
		record_restored_from "$new" "$BACKUPS/$backup"
		publish
		say "there was no data: restored from $backup"
		exit 0
	fi
	say "$backup cannot be restored"
	failed=${failed:-$backup}
	stop immediate || true
	rm -rf "$new"
done
die "there is no data, and none of the backups can be restored: the server does not start with an empty database; $failed failed first, and the log says why: replace that file, or move it away"
