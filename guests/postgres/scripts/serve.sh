#!/bin/sh
# Serves the database that prepare has left, for as long as it holds the lock of its volume.
#
# `kubectl delete pod` starts the next pod while this one still has its time to stop, and the
# server's own postmaster.pid does not protect across containers.
#
# DATA as in common.sh; PORT (5432) and SOCKETS (/var/run/postgresql) if they are others

. "$(dirname "$0")/common.sh"
become_postgres "$DATA"
hold "$DATA"
[ -s "$DATA/pgdata/PG_VERSION" ] || die "there is no database in $DATA: prepare makes it"

postgres -D "$DATA/pgdata" -c listen_addresses='*' -p "${PORT:-5432}" \
	-c unix_socket_directories="${SOCKETS:-/var/run/postgresql}" &
server=$!
# Kubernetes says TERM, at which the server would wait for its clients to leave; at INT it sends
# them away.
trap 'kill -INT "$server" 2>/dev/null || true' TERM INT
# A signal ends the wait, not the server.
while :; do
	status=0
	wait "$server" || status=$?
	kill -0 "$server" 2>/dev/null || exit "$status"
done
