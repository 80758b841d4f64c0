#!/bin/sh
# Starts PostgreSQL in a container, with the variables of the well-known image:
#
#   PGDATA                 where the data lies
#   POSTGRES_PASSWORD      the user's password; needed at the first start
#   POSTGRES_USER          the user, `postgres` if not given; a superuser
#   POSTGRES_DB            the database, named like the user if not given
#   POSTGRES_INITDB_ARGS   more arguments for initdb
#
# At the first start, when PGDATA is empty, the database is made, and then each *.sql and *.sh in
# /docker-entrypoint-initdb.d is run, in the order of names.
set -eu

die() {
	echo "docker-entrypoint: $*" >&2
	exit 1
}

# `docker run image -c shared_buffers=1GB` gives options of the server.
case ${1-} in
-*) set -- postgres "$@" ;;
esac
[ "${1-}" = postgres ] || exec "$@"

if [ "$(id -u)" = 0 ]; then
	mkdir -p "$PGDATA" /var/run/postgresql
	chown postgres: /var/run/postgresql
	find "$PGDATA" ! -user postgres -exec chown postgres: {} +
	exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi

mkdir -p "$PGDATA"
chmod 700 "$PGDATA"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
	user=${POSTGRES_USER:-postgres}
	db=${POSTGRES_DB:-$user}
	[ -n "${POSTGRES_PASSWORD-}" ] || die "a new database needs a password: set POSTGRES_PASSWORD"
	secret=$(mktemp)
	printf '%s\n' "$POSTGRES_PASSWORD" >"$secret"
	# Split into words on purpose.
	# shellcheck disable=SC2086
	initdb --username="$user" --pwfile="$secret" --auth-local=trust --auth-host=scram-sha-256 \
		${POSTGRES_INITDB_ARGS-}
	rm -f "$secret"
	echo 'host all all all scram-sha-256' >>"$PGDATA/pg_hba.conf"

	# Nobody but this script reaches it before it is complete.
	pg_ctl -D "$PGDATA" -w -o "-c listen_addresses='' -p 5432" start
	if [ "$db" != postgres ]; then
		createdb --username="$user" --owner="$user" --maintenance-db=postgres "$db"
	fi
	for file in /docker-entrypoint-initdb.d/*; do
		case $file in
		*.sql) psql -v ON_ERROR_STOP=1 --no-password -U "$user" -d "$db" -f "$file" ;;
		*.sh) sh "$file" ;;
		esac
	done
	pg_ctl -D "$PGDATA" -m fast -w stop
fi
exec "$@"
