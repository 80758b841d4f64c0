# Functions of prepare: they record from which backup the data was restored, and report that in the
# termination message of the container. The record is the file innkeeper-origin in the directory of
# the data: it comes and goes with the data, so that each later pod reports it too.
#
# TERMINATION_LOG  the file from which the kubelet reads the message; /dev/termination-log if unset

# Records in the directory $1 that its data is that of the backup $2. The name of a backup contains
# the time at which it began: what was committed before is in it. A backup without a time in its
# name has the time at which it was last written.
record_restored_from() {
	time=$(printf '%s\n' "${2##*/}" |
		sed -n 's/^[0-9]*-\(....\)\(..\)\(..\)T\(..\)\(..\)\(..\)Z\.dump$/\1-\2-\3T\4:\5:\6Z/p')
	[ -n "$time" ] || time=$(date -u -r "$2" +%Y-%m-%dT%H:%M:%SZ)
	printf 'restored from %s of %s\n' "${2##*/}" "$time" >"$1/innkeeper-origin"
}

# Reports the record of the directory $1, if there is one.
report_restored_from() {
	[ -s "$1/innkeeper-origin" ] || return 0
	log=${TERMINATION_LOG:-/dev/termination-log}
	[ ! -w "$log" ] || cat "$1/innkeeper-origin" >"$log" || true
}
