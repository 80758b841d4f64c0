#!/bin/sh
# Makes sure that there is a database to serve, before it is served:
#
#   data                      nothing to do
#   no data, no backup        a new database
#   no data, backups          the newest backup that can be restored
#   ... none can be restored  fails: never an empty database in place of a lost one
#
# A database comes to be in a side folder, over a unix socket only, and gets its name when it is
# complete. So whatever is interrupted begins anew, and what has the name can be served.
# In each case the role of POSTGRES_USER gets the password POSTGRES_PASSWORD.
#
# POSTGRES_DB, POSTGRES_USER, POSTGRES_PASSWORD; DATA and BACKUPS as in common.sh

. "$(dirname "$0")/common.sh"
become_postgres "$DATA" "$BACKUPS"
[ -n "$POSTGRES_PASSWORD" ] || die "the password is empty: give the Secret one"
hold "$DATA"

pgdata=$DATA/pgdata
new=$DATA/pgdata.new
sockets=$(mktemp -d)
started=

# Starts a server on a folder that nobody can reach but this script.
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

# The role, with its password. What is said here must not reach the server's log.
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

# A new cluster in the side folder, started, with the role and an empty database.
# $1: a file of roles, or nothing.
make_new() {
	rm -rf "$new"
	# Inside of the pod everybody is trusted: who can run something there has the files anyway.
	initdb -D "$new" -U postgres --encoding=UTF8 --data-checksums \
		--auth-local=trust --auth-host=scram-sha-256 >/dev/null || return 1
	echo 'host all all all scram-sha-256' >>"$new/pg_hba.conf" || return 1
	start "$new" || return 1
	if [ -n "$1" ] && [ -s "$1" ]; then
		# The roles that initdb made are in the file too: those are no errors.
		sql -v ON_ERROR_STOP=0 -f "$1" 2>/dev/null || true
	fi
	set_password && create_database
}

restore() {
	make_new "${1%.dump}.roles.sql" || return 1
	pg_restore --exit-on-error -h "$sockets" -p 5432 -U postgres -d "$POSTGRES_DB" "$1" >&2 || return 1
	stop fast
}

# Gives the side folder its name.
publish() {
	[ -z "$started" ] || stop fast
	settle "$DATA"
	mv "$new" "$pgdata"
	settle "$DATA"
}

if [ -e "$pgdata" ]; then
	[ -s "$pgdata/PG_VERSION" ] || die "$pgdata is there and is no database: nothing is changed"
	has=$(cat "$pgdata/PG_VERSION")
	is=$(postgres -V | sed 's/^[^0-9]*\([0-9]*\).*/\1/')
	[ "$has" = "$is" ] ||
		die "the data is of PostgreSQL $has and the image is of $is: give spec.image the version $has"
	start "$pgdata"
	set_password
	stop fast
	say "the data is there"
	exit 0
fi

found=$(backups)
if [ -z "$found" ]; then
	make_new ""
	publish
	say "there was neither data nor a backup: a new database"
	exit 0
fi

for dump in $found; do
	if restore "$BACKUPS/$dump"; then
		publish
		say "there was no data: restored from $dump"
		exit 0
	fi
	say "$dump cannot be restored"
	stop immediate || true
	rm -rf "$new"
done
die "there is no data, and none of the backups can be restored: nothing is served instead of an empty database"
