#!/usr/bin/env bats
# local:, a private server for one user on one machine, which the first call that needs it starts.

load ../lib/usual

setup() {
	directory_setup
	use_long_connect_timeout
	export LOCAL=$RLOCK_RUNTIME_DIR/local.sock
}

teardown() {
	local pid status=0
	teardown_and_check_processes || status=$?
	for pid in $(servers); do
		kill -KILL "$pid"
		wait_until 10 is_gone "$pid" || status=$?
	done
	return "$status"
}

# servers: prints the pids of private servers whose directory is the runtime directory, also after it was removed or moved.
servers() {
	local link pid
	find /proc/[0-9]*/cwd -maxdepth 0 '(' -lname "$RLOCK_RUNTIME_DIR" -o -lname "$RLOCK_RUNTIME_DIR (deleted)" -o -lname "$PWD/moved" ')' 2>/dev/null | while IFS= read -r link; do
		pid=${link#/proc/} pid=${pid%/cwd}
		! is_running "$pid" || echo "$pid"
	done
}

has_servers() {
	[ "$(servers | wc -l)" = "$1" ]
}

# start_local: starts the private server; sets SERVER to its pid.
start_local() {
	rlock run -u local: warm-up -- true
	SERVER=$(servers)
}

# no_local_server STATUS REGEXP [OPTION...]: rlock with local: must exit with STATUS and one line that matches.
no_local_server() {
	run "-$1" rlock run -u local: "${@:3}" a -- true
	assert_one_line "$2"
}

@test "local: starts one private server, which later calls use, also those of scripts and owners" {
	run -7 rlock run -u local: a -- sh -c 'echo "done"; exit 7'
	assert_output 'done'
	SERVER=$(servers)
	# The socket alone must be enough to find the server.
	rm "$RLOCK_RUNTIME_DIR/local.pid"
	run -0 rlock lock -u local: --pid $$ a
	run -0 rlock unlock -u local: a
	run -0 rlock lock -u local: --owner ci --lease 1m a
	run -75 rlock run -u local: -n a -- true
	run -0 rlock unlock -u local: --owner ci a
	assert_equal "$(servers)" "$SERVER"
	assert_equal "$(ask_redis "$LOCAL" dbsize)" 0
}

@test "local: works in RLOCK_URL and in the configuration file, gets no password, and starts a server only when named" {
	run -69 rlock run -u "unix://$PWD/nobody.sock" --connect-timeout 200ms a -- true
	[ ! -e "$LOCAL" ]
	unset RLOCK_CONFIG
	echo swordfish >password
	mkdir "$XDG_CONFIG_HOME"
	printf '%s\n' 'url = redis://redis.example' "password-file = $PWD/password" 'db = 3' 'connect-timeout = 30s' >"$XDG_CONFIG_HOME/rlock.conf"
	RLOCK_URL=local: REDISCLI_AUTH=swordfish run -0 rlock run a -- true
	assert_output ''
	unset RLOCK_URL
	printf '%s\n' 'url = local:' 'password-file = no-such-file' 'connect-timeout = 30s' >"$XDG_CONFIG_HOME/rlock.conf"
	run -0 rlock run a -- ask_redis "$LOCAL" exists a
	assert_output 1
	has_servers 1
}

@test "ten calls at the same time share one server and exclude each other, also after the server was killed" {
	for _ in 1 2; do
		printf 0 >number
		BACKGROUND=()
		for _ in {1..10}; do
			in_background rlock run -u local: a -- sh -c 'read -r n <number; echo $((n + 1)) >number'
		done
		all_ended_with 0
		assert_equal "$(<number)" 10
		has_servers 1
		kill -KILL "$(servers)"
	done
}

@test "calls that come just after the server was killed, while the kernel ends it, start another one" {
	run -0 rlock run -u local: a -- true
	for _ in 1 2 3; do
		BACKGROUND=()
		wait_until 5 has_servers 1
		SERVER=$(servers)
		# Before it closes the socket, the kernel releases the memory of the server: let that take some time.
		ask_redis "$LOCAL" eval 'redis.call("set", KEYS[1], string.rep("x", ARGV[1]))' 1 filler $((1 << 27)) >/dev/null
		kill -KILL "$SERVER"
		for _ in 1 2 3; do in_background rlock run -u local: a -- true; done
		all_ended_with 0
	done
}

@test "the private server listens only on its socket, in its own session, and stores nothing on disk" {
	local inode
	run -0 sh -c 'umask 0777; exec rlock run -u local: a -- sh -c "$0"' 'ask_redis "$LOCAL" save; ask_redis "$LOCAL" bgsave'
	# The process that saves has the directory and the name of the server, and may still run.
	wait_until 10 has_servers 1
	SERVER=$(servers)
	assert_equal "$(ask_redis "$LOCAL" config get port | tail -n 1)" 0
	for inode in $(find "/proc/$SERVER/fd" -lname 'socket:*' -printf '%l\n' | tr -dc '0-9\n'); do
		run -1 grep -qs " $inode " /proc/net/tcp /proc/net/tcp6
	done
	assert_equal "$(stat -c %a "$RLOCK_RUNTIME_DIR" "$LOCAL" | xargs)" '700 700'
	assert_equal "$(ps -o sid= -p "$SERVER" | tr -d ' ')" "$SERVER"
	kill -TERM "$SERVER"
	wait_until 10 has_servers 0
	run -0 ls -A "$RLOCK_RUNTIME_DIR"
	assert_output --regexp $'^(local\.(sock|pid)\n?)+$'
}

@test "the private server inherits neither the environment nor the descriptors of its caller" {
	# redis-server overwrites its environment in /proc, so a wrapper records the environment before the exec. The wrapper
	# writes to a pipe, since rlock starts the server with a file size limit of 0.
	mkfifo told
	mkdir bin
	printf '#!/bin/sh\nenv >"%s"\nexec %s "$@"\n' "$PWD/told" "$(command -v redis-server)" >bin/redis-server
	chmod +x bin/redis-server
	cat told >environment 3>&- &
	PATH=$PWD/bin:$PATH SECRET=swordfish run -0 timeout 60 sh -c 'x=$(rlock run -u local: a -- echo "done" 2>&1 7>&1); echo "$x" | cat'
	assert_output 'done'
	wait $!
	assert [ -s environment ]
	run -1 grep -E 'swordfish|RLOCK|BATS' environment
}

@test "the private server inherits no descriptor where close_range is forbidden, not even one above the limit" {
	needs_refuse
	prlimit --nofile=100: refuse refused rlock close_range EPERM 1+ rlock run -u local: a -- true 3>&- 7<>/dev/zero 900<>/dev/zero
	[ -s refused ]
	run -0 find "/proc/$(servers)/fd" -lname /dev/zero
	assert_output ''
}

@test "a private server that is ending, and listens but does not answer, is replaced" {
	start_local
	kill -TERM "$SERVER"
	wait_until 10 has_servers 0
	# Simulate a process that is being killed: its main thread has ended, and another thread keeps the socket open.
	in_background env -C "$RLOCK_RUNTIME_DIR" python3 -IS -c '
import ctypes, socket, threading
listener = socket.socket(socket.AF_UNIX)
listener.bind("local.sock")
listener.listen()
threading.Thread(target=lambda: threading.Event().wait(60)).start()
ctypes.CDLL(None).pthread_exit(None)'
	wait_until 10 is_gone "$PID"
	run -0 rlock run -u local: a -- ask_redis "$LOCAL" exists a
	assert_output 1
}

# has_socket PID: whether the process is rlock (not the shell that will become it) and has a socket.
has_socket() {
	grep -qsx rlock "/proc/$1/comm" && [ -n "$(find "/proc/$1/fd" -lname 'socket:*' 2>/dev/null)" ]
}

@test "when the private server hangs, no second one is started, as the first one has locks" {
	start_local
	kill -STOP "$SERVER"
	no_local_server 69 '^rlock: ' --connect-timeout 300ms
	in_background rlock run -u local: a -- true
	wait_until 5 has_socket "$PID"
	kill -TERM "$PID"
	ended_with 143
	assert_equal "$(servers)" "$SERVER"
}

# remains_only_server_after COMMAND...: runs COMMAND, which removes files of the private server. No second server may start until
# the first one has been ended in the way that the message proposes.
remains_only_server_after() {
	start_local
	"$@"
	no_local_server 71 "^rlock: .*: kill $SERVER\$"
	assert_equal "$(servers)" "$SERVER"
	run -71 rlock check -u local:
	assert_line --regexp "^BAD +local +process $SERVER .*: kill $SERVER\$"
	kill -TERM "$SERVER"
	wait_until 10 has_servers 0
	start_local
	has_servers 1
	kill -KILL "$SERVER"
	wait_until 10 has_servers 0
}

@test "when the files of the private server were removed, no second one is started, and check says BAD" {
	remains_only_server_after find "$RLOCK_RUNTIME_DIR" '(' -type f -o -type s ')' -delete
	remains_only_server_after rm -r "$RLOCK_RUNTIME_DIR"
}

@test "when the socket alone of the private server was removed, no second one is started, and check says BAD" {
	remains_only_server_after rm "$LOCAL"
	start_local
	rm "$LOCAL"
	no_local_server 71 "^rlock: .*: kill $SERVER\$" --connect-timeout 1ms
	run -78 rlock check
	assert_line --regexp "^BAD +local +process $SERVER .*: kill $SERVER\$"
}

@test "a private server that has lost its socket is found behind a symbolic link, too" {
	local link=$PWD/link/${RLOCK_RUNTIME_DIR##*/}
	ln -s "${RLOCK_RUNTIME_DIR%/*}" link
	RLOCK_RUNTIME_DIR=$link rlock run -u local: warm-up -- true
	SERVER=$(servers)
	rm "$LOCAL"
	RLOCK_RUNTIME_DIR=$link run -71 rlock run -u local: a -- true
	assert_one_line "^rlock: .*: kill $SERVER\$"
}

@test "a private server that is starting, and does not listen yet, is not taken for one that has lost its socket" {
	mkfifo go
	mkdir bin
	printf '#!/bin/sh\nread -r _ <"%s"\nexec %s "$@"\n' "$PWD/go" "$(command -v redis-server)" >bin/redis-server
	chmod +x bin/redis-server
	PATH=$PWD/bin:$PATH in_background rlock run -u local: a -- true
	wait_until 10 has_servers 1
	in_background rlock run -u local: a -- true
	# Let both calls poll for as long as it takes until they check for a lost socket.
	pause_for 0.5
	run -0 rlock check
	refute_output --partial BAD
	echo >go
	all_ended_with 0
	has_servers 1
}

@test "when the directory of the private server was moved, no second one is started, and check says BAD" {
	remains_only_server_after mv "$RLOCK_RUNTIME_DIR" "$PWD/moved"
}

@test "a runtime directory that is removed while rlock looks for the private server is created again" {
	needs_refuse
	echo >hangs
	in_background refuse hangs rlock connect WAIT 1 rlock run -u local: a -- true
	wait_until 10 grep -q "[0-9]" hangs
	rmdir "$RLOCK_RUNTIME_DIR"
	rm hangs
	ended_with 0
	has_servers 1
}

@test "check reports a private server that no call can find any more as BAD, also when another one listens" {
	start_local
	rm -r "$RLOCK_RUNTIME_DIR"
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	in_background redis-server --port 0 --unixsocket "$LOCAL" --unixsocketperm 700 --save '' --dir "$PWD"
	wait_until 10 redis-cli -s "$LOCAL" ping
	run -78 rlock check -u local:
	assert_line --regexp "^BAD +local +process $SERVER .*: kill $SERVER\$"
}

@test "a lost server of another directory, or a process of another user, does not prevent a new server" {
	RLOCK_RUNTIME_DIR=$PWD/elsewhere rlock run -u local: a -- true
	BACKGROUND+=("$(cat elsewhere/local.pid)")
	rm -r elsewhere
	start_local
	has_servers 1
	[ "$(id -u)" = 0 ] || skip 'only root can run processes of two users'
	in_background env -C "$RLOCK_RUNTIME_DIR" sh -c 'exec 3<local.pid 4<"/proc/$0/fd/4"; exec setpriv --reuid=65534 --clear-groups sleep 600' "$SERVER"
	wait_until 10 grep -qsx sleep "/proc/$PID/comm"
	kill -KILL "$SERVER"
	wait_until 10 is_gone "$SERVER"
	rm "$RLOCK_RUNTIME_DIR"/local.*
	run -0 rlock run -u local: a -- true
}

@test "a private server that a command has started is neither terminated with that command nor waited for" {
	in_background rlock run -q outer -- sh -c 'rlock run -u local: a -- true; touch started; run_until_ended'
	wait_until 10 file_exists started
	SERVER=$(servers)
	kill -TERM "$PID"
	ended_with 143
	assert_equal "$(servers)" "$SERVER"
	kill -KILL "$SERVER"
	wait_until 5 is_gone "$SERVER"
	run -0 timeout 60 rlock run --wait-all outer -- rlock run -u local: a -- true
	has_servers 1
}

@test "a private server of another runtime directory is not waited for either" {
	local server
	run timeout 60 rlock run --wait-all outer -- env RLOCK_RUNTIME_DIR="$PWD/elsewhere" rlock run -u local: a -- true
	server=$(<elsewhere/local.pid)
	BACKGROUND+=("$server")
	assert_equal "$status" 0
	is_running "$server"
}

@test "a private server whose program may not be read is not waited for either" {
	[ "$(id -u)" != 0 ] || skip 'root may see the descriptors of all processes'
	local server
	mkdir bin
	cp "$(command -v redis-server)" bin/redis-server
	chmod 111 bin/redis-server
	PATH=$PWD/bin:$PATH run timeout 60 rlock run --wait-all outer -- rlock run -u local: a -- true
	server=$(<"$RLOCK_RUNTIME_DIR/local.pid")
	BACKGROUND+=("$server")
	assert_equal "$status" 0
	is_running "$server"
	run ! ls "/proc/$server/fd"
}

@test "without /dev/null the message says so" {
	unshare -m true 2>/dev/null || skip 'no mount namespaces here'
	run -71 unshare -m sh -c 'mount -t tmpfs none /dev && exec rlock run -u local: a -- true'
	assert_one_line '^rlock: local: cannot open /dev/null, .*: No such file or directory$'
	has_servers 0
}

@test "a runtime directory that others may enter, or whose path is too long for a socket, gets no server" {
	mkdir -m 755 "$RLOCK_RUNTIME_DIR"
	no_local_server 71 '^rlock: '
	RLOCK_RUNTIME_DIR=$PWD/run-$(printf 'x%.0s' {1..120})
	no_local_server 71 '^rlock: '
	has_servers 0
}
