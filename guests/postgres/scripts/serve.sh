#!/bin/sh
# Runs the server on the database that prepare has created, while it holds the lock of the volume.
#
# `kubectl delete pod` starts the next pod during the grace period of this one, and the server's
# postmaster.pid does not protect across containers.
#
# Variables: DATA, BACKUPS and EPHEMERAL as in common.sh; those of prepare.sh if EPHEMERAL; PORT (default 5432); SOCKETS (default /var/run/postgresql)

. "$(dirname "$0")/common.sh"
become_postgres "$DATA"
lock_data
if [ -n "${EPHEMERAL:-}" ] && ! is_newest; then
	say "another pod has prepared its data since: restoring the newest backup"
	HAS_LOCK=yes sh "$(dirname "$0")/prepare.sh" &
	wait "$!"
fi
[ -s "$DATA/pgdata/PG_VERSION" ] || die "there is no database in $DATA: run prepare first"

postgres -D "$DATA/pgdata" -c listen_addresses='*' -p "${PORT:-5432}" \
	-c unix_socket_directories="${SOCKETS:-/var/run/postgresql}" &
server=$!
# The kubelet sends TERM, on which the server would wait until its clients disconnect; on INT it
# disconnects them.
trap 'kill -INT "$server" 2>/dev/null || true' TERM INT
# A signal ends the wait, not the server.
while :; do
	status=0
	wait "$server" || status=$?
	kill -0 "$server" 2>/dev/null || exit "$status"
done
