# Functions of all scripts, which source this file. They need POSIX sh, the programs of the image
# `postgres`, flock, and one of gosu, su-exec and setpriv.
#
# DATA     the volume of the database: the lock, and the directory pgdata when it is complete
# BACKUPS  the volume of the backups

set -eu
umask 077
me=$(basename "$0" .sh)
# The first process of a container ignores signals without a handler.
trap 'exit 143' TERM INT

say() {
	printf '%s: %s\n' "$me" "$*" >&2
}

die() {
	say "$*"
	exit 1
}

# Runs the script again as the user postgres, because the server refuses to run as root. A new
# volume belongs to root, as does a backup that a user has copied there, so this changes the owner
# of the given files and directories and of their direct entries first. Not of all files below: this runs
# before the lock, and a running server creates and deletes files there. A container that does not
# start as root must be able to write to its volumes.
become_postgres() {
	[ "$(id -u)" = 0 ] || return 0
	for folder in "$@"; do
		find "$folder" -maxdepth 1 ! -user postgres -exec chown -h postgres: {} + ||
			say "cannot change the owner of all files in $folder to postgres"
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

# Takes the lock of a volume and holds it until this shell and all its child processes have ended:
# each of them keeps the file open. Waits while another pod holds the lock.
hold() {
	exec 9>"$1/lock"
	flock -n 9 && return 0
	say "waiting for the process that holds the lock of $1"
	# A lock belongs to the open file, not to the process; and a signal ends this wait.
	flock 9 &
	wait "$!"
}

# Flushes a volume's file system to its disk.
settle() {
	sync -f "$1"
}

# Lists the complete backups, newest first. Their names begin with a sequence number, because a
# clock may be set back and an older backup must not become the newest.
backups() {
	files=$(ls -r "$BACKUPS") || return 1
	printf '%s\n' "$files" | grep '^[0-9]\{10\}-[0-9]\{8\}T[0-9]\{6\}Z\.dump$' || true
}

# Returns 0 if a dump has tables, 1 if it has none, 2 if it cannot be read.
has_tables() {
	list=$(pg_restore --list "$1") || return 2
	printf '%s\n' "$list" | grep -q '^[0-9][0-9]*; [0-9][0-9]* [0-9][0-9]* TABLE '
}
