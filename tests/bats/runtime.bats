#!/usr/bin/env bats
# Hold files, and what others do to their directory: another user creates /tmp/rlock-UID first, or a cleaner of /tmp deletes
# files. All tests on this machine share these directories, so use a user id that does not exist here.

load ../lib/usual

# Give the server a port, since the other user cannot search the test's directory, in which the socket is.
setup_file() { start_server_at_port; }

setup() {
	directory_setup
	# Neither USER_ID nor STRANGER exists on this machine.
	while USER_ID=$((20000 + RANDOM % 20000)) STRANGER=$((USER_ID + 20001)) && getent passwd "$USER_ID" "$STRANGER" >/dev/null; do :; done
	FIRST=/tmp/rlock-$USER_ID
	SECOND=/run/user/$USER_ID/rlock
	export RLOCK_URL=redis://127.0.0.1:$PORT
}

teardown() {
	if [ -n "${HAS_USERS-}" ]; then
		pkill -KILL -u "$USER_ID" || :
		wait_until 10 eval '! pgrep -u "$USER_ID" >/dev/null'
		rm -rf "$FIRST" "${SECOND%/*}"
	fi
	teardown_and_check_processes
}

# as_user COMMAND [ARG...]: runs COMMAND as USER_ID, with the default runtime directory.
as_user() {
	as "$USER_ID" env -u RLOCK_RUNTIME_DIR -u XDG_CONFIG_HOME HOME=/ "$@"
}

# as UID COMMAND [ARG...]: runs COMMAND as this user and group.
as() {
	(cd / && exec setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}")
}

# needs_users: skips the test unless USER_ID can run rlock. Sets PID to a process of that user, for locks without a command.
needs_users() {
	[ "$(id -u)" = 0 ] || skip 'only root can run processes of two users'
	as_user rlock --version >/dev/null 2>&1 || skip 'another user cannot run rlock here'
	assert [ ! -e "$FIRST" ]
	assert [ ! -e "${SECOND%/*}" ]
	HAS_USERS=yes
	in_background setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups sleep 600
	wait_until 5 pgrep -u "$USER_ID" -x sleep
}

# log_in [UID]: creates /run/user/USER_ID for the user, as a login does, or for another owner UID.
log_in() {
	mkdir -p /run/user
	mkdir -m 700 "/run/user/$USER_ID"
	chown "${1:-$USER_ID}" "/run/user/$USER_ID"
}

# stranger_takes COMMAND...: removes the user's directory in /tmp, and lets STRANGER create it by COMMAND. Repeats this until it
# succeeds, since a renewal of the user's lock can create the directory first.
stranger_takes() {
	wait_until 10 takes_first "$@"
}

takes_first() {
	rm -rf "$FIRST"
	as "$STRANGER" "$@" "$FIRST" 2>/dev/null
}

@test "a lock without a command works when another user has created the user's directory in /tmp, with any umask, and after that is removed" {
	local how
	needs_users
	log_in
	for how in 'mkdir -m 000' touch 'ln -s /var/tmp'; do
		# shellcheck disable=SC2086
		stranger_takes $how
		run -0 as_user bash -c 'umask 0777; rlock lock --pid $$ a && rlock renew a >/dev/null &&
			rlock run -n a -- ls -A "/run/user/$UID/rlock" && rlock unlock a'
		assert_output --regexp '^hold-[^ ]+$'
		no_keys
	done
	assert_equal "$(stat -c '%u %a' "$SECOND")" "$USER_ID 700"
	run -0 as_user rlock lock --pid "$PID" a
	rm "$FIRST"
	run -0 as_user rlock lock --pid "$PID" b
	assert [ -n "$(ls "$FIRST")" ]
	run -0 as_user rlock renew --pid "$PID" a
	run -0 as_user rlock unlock --pid "$PID" a
	run -0 as_user rlock unlock --pid "$PID" b
	no_keys
}

@test "when another user has created the directory and there is no other, or for local:, the proposed command of root repairs it" {
	needs_users
	stranger_takes mkdir -m 755
	touch "$FIRST/left-here"
	# The directory in /run/user belongs to someone else.
	log_in "$STRANGER"
	for words in "lock --pid $PID" "unlock --pid $PID" "renew --pid $PID" 'run -u local:'; do
		[[ $words != *local: ]] || chown "$USER_ID" "${SECOND%/*}"
		run -71 as_user sh -c "rlock $words a $([[ $words != *local: ]] || echo -- true)"
		assert_one_line "^rlock: a: runtime directory '$FIRST': belongs to user $STRANGER; .*: sudo sh -c '.*'\$"
		refute file_exists "$SECOND"
		no_keys
	done
	sh -c "${output#*: sudo }"
	run -0 as_user rlock lock --pid "$PID" a
	run -0 as_user rlock unlock --pid "$PID" a
	refute file_exists "$FIRST/left-here"
}

hold_file() {
	find "$RLOCK_RUNTIME_DIR" -name 'hold-*' 2>/dev/null
}

# was_written: whether the hold file exists, and was touched in the last hour.
was_written() {
	[ -n "$(find "$RLOCK_RUNTIME_DIR" -name 'hold-*' -mmin -60 2>/dev/null)" ]
}

# without_renewal_time FILE: prints a hold file without the time of the last renewal.
without_renewal_time() {
	awk '$1 == "state" { $4 = "" } 1' "$1"
}

@test "each renewal touches the hold file, and writes it again when a cleaner has removed it, so that unlock works" {
	local name
	rlock lock --pid $$ -t 18s a
	name=$(hold_file)
	# Stop the renewers, since a renewal would touch the file again.
	find_only_renewer
	kill -STOP "$RENEWER"
	touch -d '20 days ago' "$name"
	refute was_written
	kill -CONT "$RENEWER"
	wait_until 15 was_written
	without_renewal_time "$name" >before
	rm "$name"
	wait_until 10 was_written
	assert_equal "$(hold_file)" "$name"
	assert_equal "$(without_renewal_time "$name")" "$(<before)"
	wait_until 5 is_renewed a 3000
	run -0 rlock unlock --pid $$ a
	no_keys
	no_hold_files
}

@test "a lock can be renewed and released when the runtime directory is full" {
	unshare -m mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	run -0 unshare -m bash -c 'mount -t tmpfs -o mode=700,size=16k none "$1" && rlock lock --pid $$ a || exit 9
		head -c 65536 /dev/zero >"$1/full" 2>/dev/null
		rlock renew a && rlock unlock a' bash "$RLOCK_RUNTIME_DIR"
	no_keys
}

@test "when the runtime directory was removed, no lock is acquired, and a held one is released with its process" {
	local whose
	in_background sleep 60
	whose=$PID
	hold_by_foreign_client a
	in_background sh -c 'exec rlock lock --pid "$0" a 2>stderr' "$whose"
	wait_until 5 has_waiters a
	rm -rf "$RLOCK_RUNTIME_DIR"
	release_by_foreign_client a
	ended_with 71
	run -0 cat stderr
	assert_one_line '^rlock: a: '
	is_free a
	rlock lock --pid "$whose" a
	rm -rf "$RLOCK_RUNTIME_DIR"
	run -1 rlock unlock --pid "$whose" a
	is_held a
	kill "$whose"
	wait_until 5 no_keys
}

@test "when RLOCK_RUNTIME_DIR is another user's directory, as after sudo -E, the message does not propose to remove it" {
	needs_users
	mkdir -m 700 theirs
	chown "$USER_ID" theirs
	RLOCK_RUNTIME_DIR=$PWD/theirs run -71 rlock lock --pid $$ a
	assert_one_line "^rlock: a: runtime directory '$PWD/theirs': belongs to user $USER_ID, .*: unset RLOCK_RUNTIME_DIR, "
	refute_output --partial remove
}

@test "unlock of a lock that root has acquired for the caller's process says how root releases it" {
	needs_users
	rlock lock --pid "$PID" a
	run -1 as_user rlock unlock --pid "$PID" a
	assert_output "rlock: a: root holds it for process $PID; try: sudo rlock unlock --pid $PID a"
	rlock unlock --pid "$PID" a
}
