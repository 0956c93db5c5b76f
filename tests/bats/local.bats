#!/usr/bin/env bats
# local: a private server for one user on one machine, started by the first call that asks for it.

load ../lib/usual

setup() {
	common_setup
	export LOCAL=$RLOCK_RUNTIME_DIR/local.sock
}

teardown() {
	local dir pid status=0
	watchful_teardown || status=$?
	# Other directories of a test are named run-*.
	for dir in "$BATS_TEST_TMPDIR"/run*; do
		for pid in $(servers_of "$dir"); do
			kill -CONT "$pid" 2>/dev/null || :
			kill -KILL "$pid" 2>/dev/null || :
			wait_until 10 is_gone "$pid" || status=$?
		done
	done
	return "$status"
}

# servers_of [DIR]: the pids of the private servers of a runtime directory, in which they all live.
servers_of() {
	local dir link pid
	dir=$(realpath -q "${1:-$RLOCK_RUNTIME_DIR}") && [ -d "$dir" ] || return 0
	while IFS= read -r link; do
		pid=${link#/proc/} pid=${pid%/cwd}
		! is_running "$pid" || echo "$pid"
	done < <(find /proc/[0-9]*/cwd -maxdepth 0 -lname "$dir" 2>/dev/null)
}

one_server() {
	[ "$(servers_of | wc -l)" = 1 ]
}

no_server() {
	[ -z "$(servers_of)" ]
}

local_cli() {
	ask_redis "$LOCAL" "$@"
}

start_local() {
	rlock run -u local: warm-up -- true
}

@test "with local: a lock needs no server of one's own: one is started, once, and used from then on" {
	local first
	run -7 rlock run -u local: a -- sh -c 'echo "done"; exit 7'
	assert_output 'done'
	first=$(servers_of)
	# Nothing else is needed to find it.
	rm "$RLOCK_RUNTIME_DIR/local.pid"
	start_local
	assert_equal "$(servers_of)" "$first"
	one_server
	assert_equal "$(local_cli dbsize)" 0
}

@test "a script locks and unlocks with local:, and an owner, whose lock is busy for others" {
	run -0 rlock lock -u local: --pid $$ a
	assert_equal "$(local_cli exists a)" 1
	run -0 rlock unlock -u local: a
	run -0 rlock lock -u local: --owner ci --lease 1m a
	run -75 rlock run -u local: -n a -- true
	run -0 rlock unlock -u local: --owner ci a
	assert_equal "$(local_cli dbsize)" 0
}

@test "local: can stand in RLOCK_URL and in the configuration file" {
	RLOCK_URL=local: run -0 rlock run a -- true
	one_server
	unset RLOCK_URL
	mkdir "$XDG_CONFIG_HOME"
	echo 'url = local:' >"$XDG_CONFIG_HOME/rlock.conf"
	run -0 rlock run a -- ask_redis "$LOCAL" exists a
	assert_output 1
}

@test "the private server gets no password, whatever is set up for another server" {
	echo swordfish >"$BATS_TEST_TMPDIR/password"
	mkdir "$XDG_CONFIG_HOME"
	printf '%s\n' 'url = redis://redis.example' "password-file = $BATS_TEST_TMPDIR/password" \
		'db = 3' >"$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_URL=local: run -0 rlock run a -- true
	assert_output ''
	run -0 rlock run -u local: a -- true
	assert_output ''
	REDISCLI_AUTH=swordfish run -0 rlock run -u local: a -- true
	assert_output ''
	unset RLOCK_URL
	printf '%s\n' 'url = local:' 'password-file = no-such-file' >"$XDG_CONFIG_HOME/rlock.conf"
	run -0 rlock run a -- true
	assert_output ''
}

@test "without being asked for no private server is started" {
	run -69 rlock run -u "unix://$BATS_TEST_TMPDIR/nobody.sock" --connect-timeout 200ms a -- true
	[ ! -e "$LOCAL" ]
	no_server
}

@test "ten that start at once share one server, and exclude each other" {
	printf 0 >"$BATS_TEST_TMPDIR/number"
	local -a pids=()
	for _ in {1..10}; do
		in_background rlock run -u local: a -- sh -c 'read -r n <"$1"; echo $((n + 1)) >"$1"' sh \
			"$BATS_TEST_TMPDIR/number"
		pids+=("$PID")
	done
	for pid in "${pids[@]}"; do
		ended_with 0 "$pid"
	done
	assert_equal "$(cat "$BATS_TEST_TMPDIR/number")" 10
	one_server
}

@test "the private server listens on its socket alone, in a session of its own, and keeps nothing on disk" {
	local inode server
	run -0 rlock run -u local: a -- sh -c 'ask_redis "$LOCAL" save; ask_redis "$LOCAL" bgsave'
	server=$(servers_of)
	assert_equal "$(local_cli config get port | tail -n 1)" 0
	for inode in $(find "/proc/$server/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n'); do
		run -1 grep -qs " $inode " /proc/net/tcp /proc/net/tcp6
	done
	assert_equal "$(stat -c %a "$RLOCK_RUNTIME_DIR" "$LOCAL" | xargs)" '700 700'
	assert_equal "$(ps -o sid= -p "$server" | tr -d ' ')" "$server"
	kill -TERM "$server"
	wait_until 10 no_server
	run -0 ls -A "$RLOCK_RUNTIME_DIR"
	for file in "${lines[@]}"; do
		[[ $file =~ ^local\.(sock|pid)$ ]]
	done
}

@test "the private server knows nothing of the environment of its starter" {
	# Once it runs it has written over what can be seen of its environment, so it is watched before.
	# To a pipe, since it may not write to files.
	local told=$BATS_TEST_TMPDIR/told line
	mkfifo "$told"
	exec 9<>"$told"
	mkdir "$BATS_TEST_TMPDIR/bin"
	cat >"$BATS_TEST_TMPDIR/bin/redis-server" <<-EOS
		#!/bin/sh
		{ env; echo end; } >"$told"
		exec $(command -v redis-server) "\$@"
	EOS
	chmod +x "$BATS_TEST_TMPDIR/bin/redis-server"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH SECRET=swordfish rlock run -u local: a -- true 9>&-
	local -a environment=()
	while IFS= read -r -t 5 line <&9 && [ "$line" != end ]; do
		environment+=("$line")
	done
	exec 9<&-
	assert_equal "$line" end
	[[ "${environment[*]}" != *swordfish* ]]
	[[ "${environment[*]}" != *RLOCK* ]]
	[[ "${environment[*]}" != *BATS* ]]
}

@test "the private server keeps none of its starter's descriptors" {
	run -0 timeout 60 sh -c 'x=$(rlock run -u local: a -- echo "done" 2>&1 7>&1); echo "$x" | cat'
	assert_output 'done'
}

@test "ten that find a killed server replace it by one" {
	start_local
	local first
	local -a pids=()
	first=$(servers_of)
	kill -KILL "$first"
	wait_until 10 is_gone "$first"
	for _ in {1..10}; do
		in_background rlock run -u local: a -- true
		pids+=("$PID")
	done
	for pid in "${pids[@]}"; do
		ended_with 0 "$pid"
	done
	one_server
}

is_zombie() {
	grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

@test "a private server that is about to end, and listens no more than that, is replaced" {
	start_local
	local_cli shutdown nosave >/dev/null 2>&1 || :
	wait_until 10 no_server
	# As of a process that is being killed: the first thread has gone, and others have not closed the socket yet.
	in_background env -C "$RLOCK_RUNTIME_DIR" python3 -IS -c '
import ctypes, socket, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind("local.sock")
listener.listen()
threading.Thread(target=lambda: threading.Event().wait(60)).start()
ctypes.CDLL(None).pthread_exit(None)'
	wait_until 10 is_zombie "$PID"
	run -0 rlock run -u local: --connect-timeout 10s a -- ask_redis "$LOCAL" exists a
	assert_output 1
}

# has_socket PID: it is rlock, and no shell on the way to it.
has_socket() {
	grep -qsx rlock "/proc/$1/comm" && [ -n "$(find "/proc/$1/fd" -lname 'socket:*' 2>/dev/null)" ]
}

@test "a private server that hangs is not replaced, but told of; SIGTERM ends rlock meanwhile" {
	start_local
	local server
	server=$(servers_of)
	kill -STOP "$server"
	run -69 rlock run -u local: --connect-timeout 300ms a -- true
	assert_one_line '^rlock: .+$'
	in_background rlock run -u local: --connect-timeout 30s a -- true
	wait_until 5 has_socket "$PID"
	kill -TERM "$PID"
	ended_with 143
	assert_equal "$(servers_of)" "$server"
}

@test "a private server whose socket was removed still has its locks: no second one is started" {
	start_local
	local server
	server=$(servers_of)
	rm "$LOCAL"
	run -69 rlock run -u local: --connect-timeout 300ms a -- true
	assert_one_line "^rlock: .*: kill $server\$"
	assert_equal "$(servers_of)" "$server"
	kill -KILL "$server"
	start_local
	one_server
}

@test "the private server that a command started is not stopped with that command, and not waited for" {
	in_background rlock run -q outer -- sh -c 'rlock run -u local: a -- true; touch "$1"; until_let_go' sh \
		"$BATS_TEST_TMPDIR/started"
	wait_until 10 file_exists "$BATS_TEST_TMPDIR/started"
	local server
	server=$(servers_of)
	kill -TERM "$PID"
	ended_with 143
	assert_equal "$(servers_of)" "$server"
	local_cli ping
	run -0 timeout 60 rlock run --wait-all outer -- rlock run -u local: a -- true
}

@test "a runtime directory that others may enter, or whose path is too long for a socket, gets no server" {
	mkdir -m 755 "$RLOCK_RUNTIME_DIR"
	run -71 rlock run -u local: a -- true
	assert_one_line '^rlock: .+$'
	no_server
	RLOCK_RUNTIME_DIR=$BATS_TEST_TMPDIR/run-$(printf 'x%.0s' {1..120})
	run -71 rlock run -u local: a -- true
	assert_one_line '^rlock: .+$'
	no_server
}
