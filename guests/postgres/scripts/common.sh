# What the scripts share. Read by them (`.`), not run. POSIX sh, the programs of the
# image `postgres`, flock, and one of gosu, su-exec and setpriv.
#
# DATA     the volume of the database: the lock, and the folder pgdata once it is complete
# BACKUPS  the volume of the backups

set -eu
umask 077
me=$(basename "$0" .sh)
# The first process of a container ignores signals that it does not ask for.
trap 'exit 143' TERM INT

say() {
	printf '%s: %s\n' "$me" "$*" >&2
}

die() {
	say "$*"
	exit 1
}

# Goes on as the user postgres: the server does not run as root. A volume that was just made
# belongs to root, as does a backup that somebody has put there, so the given folders and what
# lies directly in them are handed over first. Not all that is below: this is before the lock, and
# a server that still runs makes and deletes files there. A container that does not start as
# root has to be able to write to its volumes.
become_postgres() {
	[ "$(id -u)" = 0 ] || return 0
	for folder in "$@"; do
		find "$folder" -maxdepth 1 ! -user postgres -exec chown postgres: {} + ||
			say "not all of $folder could be given to the user postgres"
	done
	if command -v gosu >/dev/null; then
		exec gosu postgres sh "$0"
	elif command -v su-exec >/dev/null; then
		exec su-exec postgres sh "$0"
	elif command -v setpriv >/dev/null; then
		exec setpriv --reuid=postgres --regid=postgres --init-groups sh "$0"
	fi
	die "the image has none of gosu, su-exec and setpriv: start the container as the user postgres"
}

# Takes the lock of a volume and holds it for the life of this shell and of all that it starts:
# the file stays open in each of them. Waits while another pod has it.
hold() {
	exec 9>"$1/lock"
	flock -n 9 && return 0
	say "waits for whoever works in $1 to end"
	# A lock belongs to the open file, not to who asked for it; and a signal ends this wait.
	flock 9 &
	wait "$!"
}

# Writes a volume's changes to its disk.
settle() {
	sync -f "$1"
}

# The backups that are complete, newest first. Their names begin with a number that only grows:
# a clock may be set back, and an older state must not become the newest.
backups() {
	ls -r "$BACKUPS" | grep '^[0-9]\{10\}-[0-9]\{8\}T[0-9]\{6\}Z\.dump$' || true
}
