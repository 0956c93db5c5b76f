#!/usr/bin/env bats
# Hold files, and what others do to where they are: a stranger that has made /tmp/rlock-UID, and a cleaner of
# /tmp. The user here is new to the machine, since these places are the machine's own.

load ../lib/usual

# Behind a port, because the user can't enter the test's directory.
setup_file() { start_server_at_port; }

setup() {
	directory_setup
	choose_users
	FIRST=/tmp/rlock-$USER_ID
	SECOND=/run/user/$USER_ID/rlock
	export RLOCK_URL=redis://127.0.0.1:$PORT
}

# choose_users: sets USER_ID and STRANGER, which are no users of this machine.
choose_users() {
	while USER_ID=$((20000 + RANDOM % 20000)) STRANGER=$((USER_ID + 20001)) &&
		{ is_user "$USER_ID" || is_user "$STRANGER"; }; do :; done
}

is_user() {
	getent passwd "$1" >/dev/null
}

teardown() {
	if [ -n "${HAS_USERS-}" ]; then
		pkill -KILL -u "$USER_ID" || :
		wait_until 10 user_runs_nothing
		rm -rf "$FIRST" "${SECOND%/*}"
	fi
	watchful_teardown
}

user_runs_nothing() {
	! pgrep -u "$USER_ID" >/dev/null
}

# ---- a stranger ----

# as_user COMMAND [ARG...]: with the runtime directory that no option has chosen.
as_user() {
	as "$USER_ID" env -u RLOCK_RUNTIME_DIR -u XDG_CONFIG_HOME HOME=/ "$@"
}

# as UID COMMAND [ARG...]
as() {
	(cd / && exec setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}")
}

need_users() {
	[ "$(id -u)" = 0 ] || skip 'only root can be two users'
	as_user rlock --version >/dev/null 2>&1 || skip 'another user cannot run rlock here'
	assert [ ! -e "$FIRST" ]
	assert [ ! -e "${SECOND%/*}" ]
	HAS_USERS=yes
}

# The directory that a login makes.
log_in() {
	mkdir -p /run/user
	mkdir -m 700 "/run/user/$USER_ID"
	chown "$USER_ID" "/run/user/$USER_ID"
}

# stranger_takes WHAT: the user's place in /tmp. A renewal of the user's lock may make its own there first.
stranger_takes() {
	wait_until 10 takes_first "$1"
}

takes_first() {
	rm -rf "$FIRST"
	case $1 in
	directory) as "$STRANGER" mkdir -m 755 "$FIRST" 2>/dev/null ;;
	'closed directory') as "$STRANGER" mkdir -m 000 "$FIRST" ;;
	file) as "$STRANGER" touch "$FIRST" ;;
	link) as "$STRANGER" ln -s /var/tmp "$FIRST" ;;
	esac
}

# A process of the user's that locks can be for; sets PID.
start_process() {
	in_background setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups sleep 600
	wait_until 5 is_the_users "$PID"
}

is_the_users() {
	[ "$(stat -c %u "/proc/$1")" = "$USER_ID" ] && [ "$(cat "/proc/$1/comm")" = sleep ]
}

# holds_in DIRECTORY COUNT
holds_in() {
	[ "$(find "$1" -name 'hold-*' 2>/dev/null | wc -l)" = "$2" ]
}

@test "a lock without a command works where a stranger has made the user's directory in /tmp" {
	local what
	need_users
	log_in
	for what in 'closed directory' file link; do
		stranger_takes "$what"
		run -0 as_user bash -c 'rlock lock --pid $$ a && rlock renew a >/dev/null &&
			rlock run -n a -- ls -A "/run/user/$UID/rlock" && rlock unlock a'
		assert_output --regexp '^hold-[^ ]+$'
		no_keys
	done
	assert_equal "$(stat -c '%u %a' "$SECOND")" "$USER_ID 700"
}

@test "a lock is found in either directory, whether the stranger's comes or goes" {
	need_users
	log_in
	start_process
	stranger_takes directory
	run -0 as_user rlock lock --pid "$PID" a
	holds_in "$SECOND" 1
	rm -r "$FIRST"
	run -0 as_user rlock lock --pid "$PID" b
	holds_in "$FIRST" 1
	run -0 as_user rlock renew --pid "$PID" a
	run -0 as_user rlock renew --pid "$PID" b
	run -0 as_user rlock unlock --pid "$PID" a
	run -0 as_user rlock unlock --pid "$PID" b
	no_keys
}

@test "where a stranger has made the directory and there is no other, the administrator's command mends it" {
	need_users
	start_process
	stranger_takes directory
	touch "$FIRST/left-here"
	for verb in lock unlock renew; do
		run -71 as_user rlock "$verb" --pid "$PID" a
		assert_one_line "^rlock: a: runtime directory '$FIRST': belongs to user $STRANGER: .*: sudo sh -c '.*'\$"
	done
	is_free a
	sh -c "${output#*: sudo }"
	run -0 as_user rlock lock --pid "$PID" a
	run -0 as_user rlock unlock --pid "$PID" a
	refute file_exists "$FIRST/left-here"
}

@test "a directory in /run/user that is not the user's is not used" {
	need_users
	start_process
	stranger_takes directory
	log_in
	chown "$STRANGER" "${SECOND%/*}"
	run -71 as_user rlock lock --pid "$PID" a
	assert_one_line "^rlock: a: runtime directory '$FIRST': "
	refute file_exists "$SECOND"
	is_free a
}

@test "local: starts no server in another place than the user's directory in /tmp" {
	need_users
	log_in
	stranger_takes directory
	run -71 as_user rlock run -u local: a -- true
	assert_one_line "^rlock: a: runtime directory '$FIRST': belongs to user $STRANGER: .*: sudo sh -c '.*'\$"
	refute file_exists "$SECOND"
	user_runs_nothing
}

# A listener on the socket of local: in the stranger's directory, which writes down what it hears.
listen_as_stranger() {
	in_background setpriv --reuid="$STRANGER" --regid="$STRANGER" --clear-groups python3 -IS -c '
import os, socket, sys
os.chdir(sys.argv[1])
listener = socket.socket(socket.AF_UNIX)
listener.bind("local.sock")
os.chmod("local.sock", 0o777)
listener.listen()
open("listens", "w")
while True:
    peer = listener.accept()[0]
    open("connected", "w")
    with open("heard", "ab") as heard:
        heard.write(peer.recv(1))
' "$FIRST"
	wait_until 10 file_exists "$FIRST/listens"
}

@test "a stranger's server in the place of the user's local: server is told nothing" {
	local holder
	need_users
	in_background setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups \
		env -C / -u RLOCK_RUNTIME_DIR -u XDG_CONFIG_HOME HOME=/ rlock run -q -u local: -t 6s a -- sleep 600
	holder=$PID
	wait_until 10 file_exists "$FIRST/local.pid"
	wait_until 10 pgrep -u "$USER_ID" -x sleep
	kill -KILL "$(cat "$FIRST/local.pid")"
	stranger_takes directory
	listen_as_stranger
	wait_until 10 file_exists "$FIRST/connected"
	ended_with 76 "$holder"
	refute test -s "$FIRST/heard"
}

# ---- umask ----

@test "locks without a command and local: work under any umask" {
	local mask
	need_users
	for mask in 0777 0000; do
		run -0 as_user bash -c "umask $mask"'
			rlock lock --pid $$ a && rlock lock --pid $$ b && rlock renew a && rlock unlock a && rlock unlock b &&
			rlock run -u local: a -- true && rlock run -u local: b -- true'
		pkill -KILL -u "$USER_ID"
		wait_until 10 user_runs_nothing
		run -0 as_user rlock run -u local: a -- true
		no_keys
		pkill -KILL -u "$USER_ID"
		wait_until 10 user_runs_nothing
		rm -r "$FIRST"
	done
}

# ---- a cleaner ----

hold_file() {
	find "$RLOCK_RUNTIME_DIR" -name 'hold-*' 2>/dev/null
}

has_hold_file() {
	[ -n "$(hold_file)" ]
}

# was_touched FILE: in the last hour.
was_touched() {
	[ $(($(date +%s) - $(stat -c %Y "$1"))) -lt 3600 ]
}

@test "each renewal touches the lock's file, so that no cleaner takes it for an old one" {
	rlock lock --pid $$ -t 3s a
	touch -d '20 days ago' "$(hold_file)"
	refute was_touched "$(hold_file)"
	wait_until 10 was_touched "$(hold_file)"
	run -0 rlock unlock --pid $$ a
}

# A hold file without the time of the last renewal.
without_renewal() {
	awk '$1 == "state" { $4 = "" } 1' "$1"
}

@test "a lock's file that a cleaner has removed is written again by the next renewal, and unlock works" {
	local name
	rlock lock --pid $$ -t 3s a
	name=$(hold_file)
	without_renewal "$name" >before
	rm "$name"
	wait_until 10 has_hold_file
	assert_equal "$(hold_file)" "$name"
	assert_equal "$(without_renewal "$name")" "$(cat before)"
	run -0 rlock unlock --pid $$ a
	no_keys
	no_hold_files
}

@test "a lock can be renewed and released when its directory has got full" {
	unshare -m mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	run -0 unshare -m bash -c 'mount -t tmpfs -o mode=700,size=16k none "$1" && rlock lock --pid $$ a || exit 9
		head -c 65536 /dev/zero >"$1/full" 2>/dev/null
		rlock renew a && rlock unlock a' bash "$RLOCK_RUNTIME_DIR"
	no_keys
}

@test "without its directory, which was removed meanwhile, no lock is acquired, and one that is held ends with its process" {
	local whose
	in_background sleep 60
	whose=$PID
	held_by_stranger a
	in_background sh -c 'exec rlock lock --pid "$0" a 2>said' "$whose"
	wait_until 5 has_waiters a
	rm -rf "$RLOCK_RUNTIME_DIR"
	stranger_leaves a
	ended_with 71
	run -0 cat said
	assert_one_line '^rlock: a: '
	is_free a
	rlock lock --pid "$whose" a
	rm -rf "$RLOCK_RUNTIME_DIR"
	run -1 rlock unlock --pid "$whose" a
	is_held a
	kill "$whose"
	wait_until 5 no_keys
}
