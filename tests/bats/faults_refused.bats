#!/usr/bin/env bats
# bats file_tags=long
# A server that answers, but is busy, loses its scripts, ends connections, is full, or is a replica; keys that are no lock; and what
# a server said before it closed a new connection reaches the user.

# `run` sets stderr.
# shellcheck disable=SC2154

load ../lib/usual
load ../lib/own_servers
load ../lib/faults

setup_file() { start_warm_server run; }

teardown() { common_teardown; }

# ---- busy, or forgetful ----

@test "SCRIPT FLUSH between renewals, and before the release: the lock stays held, and is released" {
	own_server
	hold_and_listen a -t 2s
	for _ in 1 2 3; do
		redis script flush
		stays 0.9 is_held a
	done
	redis script flush
	let_go
	ended_with 0
	said_nothing
	no_keys
}

# A script of another client keeps the server busy, in the background, until it is killed. For its lua-time-limit the
# server does not answer at all, then it says to each client that it is BUSY.
be_busy() {
	# A server of the tests comes before all others, which would get no processor meanwhile.
	chrt --other --pid 0 "$SERVER_PID" 2>/dev/null || :
	in_background ask_redis "$SERVER_SOCKET" eval 'while true do end' 0
}

says_busy() {
	redis ping 2>&1 | grep -q BUSY
}

@test "a server that says BUSY for a while: the lock stays held" {
	own_server --lua-time-limit 50
	hold_and_listen a -t 6s
	holder=$PID
	be_busy
	wait_until 10 says_busy
	stays 2.2 is_running "$holder"
	redis_says OK script kill
	wait_until 5 is_renewed a 6000
	let_go
	ended_with 0 "$holder"
	said_nothing
	no_keys
}

@test "CLIENT KILL of a waiter's connections: it goes on waiting, and gets the lock" {
	hold_in_background a
	holder=$PID
	wait_for_lock a
	for _ in 1 2 3; do
		redis client kill type normal
		redis client kill type pubsub
		wait_until 5 has_waiters a
	done
	is_running "$PID"
	let_go
	took_less 15 ended_with 0
	ended_with 0 "$holder"
	said_nothing
	[ -e ran ]
}

# ---- full ----

@test "a server that is full grants no lock, and says so; one that gets full meanwhile renews and releases what is held" {
	own_server
	redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*memory'
	[ ! -e ran ]
	no_keys
	redis config set maxmemory 0
	hold_and_listen a -t 2s
	redis config set maxmemory 1
	stays 2.5 is_held a
	let_go
	ended_with 0
	said_nothing
	no_keys
	redis config set maxmemory 0
	# One of two holds of an owner is released as well.
	run -0 rlock run a -- sh -c '
		rlock run a -- ask_redis "$SERVER_SOCKET" config set maxmemory 1
		ask_redis "$SERVER_SOCKET" hvals a'
	assert_output $'OK\n1'
	no_keys
}

# ---- keys of another kind ----

# refuses_kind COMMAND...: what that made of "a" is no plain lock: 78, and it is left as it is.
refuses_kind() {
	local before
	redis "$@"
	before=$(redis dump a)
	run -78 rlock run a -- touch ran
	assert_one_line '^rlock: a: '
	[ "$(redis dump a)" = "$before" ]
	redis_says -1 pttl a
	redis_says 1 dbsize
	[ ! -e ran ]
	redis del a
}

@test "a key that is a string, a list, a set or a read/write lock is refused and left alone" {
	refuses_kind set a value
	refuses_kind rpush a value
	refuses_kind sadd a value
	refuses_kind hset a mode read somebody 1
}

# ---- a replica ----

# refused_by_replica OPTION...: by each kind of lock.
refused_by_replica() {
	local verb
	for verb in run rlock; do
		run -69 --separate-stderr rlock "$verb" "$@" a -- touch ran
		assert_equal "$stderr" "rlock: a: $RLOCK_URL?db=0 is a replica: it can grant no lock: name its master, or its sentinels: READONLY You can't write against a read only replica."
		[ ! -e ran ]
	done
}

@test "a replica is refused with 69 and its name, whatever the lock is" {
	own_server
	redis replicaof 127.0.0.1 1
	refused_by_replica -n
	redis replicaof no one
	redis hset a somebody:1 1
	redis replicaof 127.0.0.1 1
	refused_by_replica -w 100ms
	redis replicaof no one
	redis del a
	redis set a value
	redis replicaof 127.0.0.1 1
	refused_by_replica
	# One that has lost its master, and does not say what it knows.
	redis config set replica-serve-stale-data no
	run -69 rlock run a -- touch ran
	assert_one_line "^rlock: a: .* is a replica: it can grant no lock"
}

@test "a server that is a replica for a while is waited for, and gives the lock when it is none any more" {
	own_server
	redis hset a somebody:1 1
	in_background sh -c 'exec "$@" 2>said' sh rlock run -v a -- touch ran
	wait_until 5 has_waiters a
	redis replicaof 127.0.0.1 1
	redis publish 'redisson_lock__channel:{a}' 0
	wait_until 15 grep -q ' is a replica' said
	redis replicaof no one
	redis del a
	ended_with 0
	file_exists ran
}

has_refused_writes() {
	redis info errorstats | grep -q '^errorstat_READONLY:'
}

@test "a hold that a replica has not heard of is not lost" {
	own_server
	hold_and_listen a -t 12s
	printf '%s\n' multi 'rename a kept' 'replicaof 127.0.0.1 1' exec | redis
	wait_until 8 has_refused_writes
	printf '%s\n' multi 'replicaof no one' "eval \"redis.call('rename', 'kept', 'a')\" 2 kept a" exec | redis
	let_go
	ended_with 0
	[ ! -s said ]
	no_keys
}

@test "a server that turns into a replica while the lock is held: the command is stopped, 76" {
	own_server
	hold_with_family a -t 3s
	wait_until 5 is_renewed a 1000
	redis replicaof 127.0.0.1 1
	ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at .*READONLY'
}

# ---- the first words of a connection ----

# start_closing ADDRESS WORDS COMMANDS: a server on this port or path that says WORDS to each client as soon as it comes,
# +OK to each of so many commands, and closes then.
start_closing() {
	in_background python3 -IS -c '
import socket, sys
address, words, commands = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
if address.isdigit():
    listener = socket.create_server(("127.0.0.1", int(address)))
else:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
while True:
    stream = listener.accept()[0]
    stream.sendall(words)
    if not words:
        stream.recv(10000)
        stream.sendall(b"+OK\r\n" * commands)
    stream.close()
' "$@"
}

# refused URL PATTERN: the lock is not acquired for this reason.
refused() {
	run -69 rlock run -n --connect-timeout 1s -u "$1" a -- touch begun
	assert_one_line "^rlock: a: $2$"
	assert [ ! -e begun ]
}

@test "a server that closes a new connection is quoted, or told of with the command at which it did" {
	local socket=$BATS_TEST_TMPDIR/socket text silent
	local full='denied by the server: raise its maxclients: a waiter takes two, a holder one: ERR max number of clients reached'
	choose_port
	start_closing "$PORT" $'-ERR max number of clients reached\r\n' 0
	start_closing "$socket" $'-ERR the proxy is going down\r\n' 0
	wait_until 5 is_listened_on "$PORT"
	wait_until 5 file_exists "$socket"
	# Whatever came first, its words or the end of the connection.
	for _ in 1 2; do
		refused "redis://127.0.0.1:$PORT" "$full"
		refused "redis://:secret@127.0.0.1:$PORT" "$full"
		refused "unix://$socket" '.*: the server closed the connection: ERR the proxy is going down'
	done
	text=": the server closed the connection at"
	choose_port
	silent=$PORT
	start_closing "$silent" '' 0
	wait_until 5 is_listened_on "$silent"
	choose_port
	start_closing "$PORT" '' 1
	wait_until 5 is_listened_on "$PORT"
	refused "redis://127.0.0.1:$silent" \
		"cannot reach redis://127.0.0.1:$silent/0$text CLIENT SETNAME: if this is a TLS port, its URL begins with rediss://"
	refused "redis://:secret@127.0.0.1:$PORT" "cannot reach redis://127.0.0.1:$PORT/0$text CLIENT SETNAME"
	refused "redis://127.0.0.1:$PORT" "cannot reach redis://127.0.0.1:$PORT/0$text EVALSHA"
}
