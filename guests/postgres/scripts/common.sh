# Functions of all scripts, which source this file. They need POSIX sh, the programs of the image
# `postgres`, flock, and one of gosu, su-exec and setpriv.
#
# DATA     the volume of the database: the lock, and the directory pgdata when it is complete
# BACKUPS  the volume of the backups
# OWNER    the PostgreSQL whose volumes these are: group, kind, namespace and name
# EPHEMERAL  yes if DATA is a directory of the pod, which no other pod shares

set -eu
umask 077
script=$(basename "$0" .sh)
# The first process of a container ignores signals without a handler.
trap 'exit 143' TERM INT

say() {
	printf '%s: %s\n' "$script" "$*" >&2
}

# Ends the script. The kubelet puts the text into the status of the pod.
die() {
	say "$*"
	log=${TERMINATION_LOG:-/dev/termination-log}
	[ ! -w "$log" ] || printf '%s: %s\n' "$script" "$*" >"$log" || true
	exit 1
}

# Runs the script again as the user postgres, because the server refuses to run as root. A new
# volume belongs to root, as does a backup that a user has copied there, so this changes the owner
# of the given directories and of their direct entries first. Not of all files below: this runs
# before the lock, and a running server creates and deletes files there. A container that does not
# start as root must be able to write to its volumes.
become_postgres() {
	[ "$(id -u)" = 0 ] || return 0
	for folder in "$@"; do
		# The volume of the original may be mounted read-only at backup.
		find "$folder" -maxdepth 1 ! -user postgres ! -name backup -exec chown -h postgres: {} + ||
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
# each of them keeps the file open. Waits while another pod holds the lock. $2: another file
lock_volume() {
	exec 9>"$1/${2:-lock}"
	flock -n 9 && return 0
	say "waiting for the process that holds the lock of $1"
	# A lock belongs to the open file, not to the process; and a signal ends this wait.
	flock 9 &
	wait "$!"
}

# Takes the lock of the data. Data in the pod is locked on the volume of the backups: two pods at
# once would each have a database, and the backups of one would replace those of the other.
lock_data() {
	if [ -n "${EPHEMERAL:-}" ]; then
		lock_volume "$BACKUPS" server.lock
	else
		lock_volume "$DATA"
	fi
}

# Returns whether no other pod has prepared its data after this one. Needs the lock of the data. On
# a volume that has been emptied, the data of this pod may be the only copy.
is_newest() {
	[ -s "$DATA/turn" ] || return 1
	if [ ! -e "$BACKUPS/turn" ]; then
		ls "$BACKUPS" >/dev/null || die "$BACKUPS cannot be read: nothing is changed"
		return 0
	fi
	newest=$(cat "$BACKUPS/turn") || die "$BACKUPS/turn cannot be read: nothing is changed"
	[ "$(cat "$DATA/turn")" = "$newest" ]
}

# Fails if a volume belongs to another PostgreSQL. Changes nothing.
check_owner() {
	[ -n "${OWNER:-}" ] || return 0
	for entry in lock server.lock owner owner.lock owner.new pgdata turn; do
		[ ! -L "$1/$entry" ] || die "$1/$entry is a symbolic link: nothing is changed; remove it"
	done
	[ -e "$1/owner" ] || return 0
	[ -f "$1/owner" ] || die "$1/owner is not a file: nothing is changed; remove it"
	owner=$(head -c 500 "$1/owner" | tr -cd '[:alnum:]./-')
	[ "$owner" = "$OWNER" ] ||
		die "the volume at $1 belongs to '$owner', and this is '$OWNER': give each PostgreSQL a claim of its own; to hand the volume over, stop the other one and delete the file owner in it"
}

# Writes to a volume that it belongs to this PostgreSQL, unless it belongs to another one.
record_owner() {
	check_owner "$1"
	[ -n "${OWNER:-}" ] || return 0
	(
		flock 8
		[ -e "$1/owner" ] || { printf '%s\n' "$OWNER" >"$1/owner.new" && mv "$1/owner.new" "$1/owner"; }
	) 8>"$1/owner.lock"
	check_owner "$1"
}

# Flushes a volume's file system to its disk.
sync_volume() {
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
