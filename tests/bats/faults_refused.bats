#!/usr/bin/env bats
# bats file_tags=long
# A server that answers, but is busy, loses its scripts, ends connections, is full, or is a replica; and keys that are no
# lock.

# In single quotes stand whole scripts; each test is a subshell, and knows that; run sets stderr.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/own_servers
load ../lib/faults

setup_file() { start_warm_server run; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

# ---- busy, or forgetful ----

@test "SCRIPT FLUSH while the lock is held: it is released all the same" {
	own_server
	hold_and_listen a
	redis script flush
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "SCRIPT FLUSH between renewals: the lock stays held" {
	own_server
	hold_and_listen a -t 3s
	for _ in 1 2 3 4; do
		redis script flush
		stays 0.9 is_held a
	done
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

@test "a lock is held on while another client's long script keeps the server from answering" {
	own_server --lua-time-limit 3200
	hold_and_listen a -t 9s
	holder=$PID
	be_busy
	wait_until 10 redis_says OK script kill
	# The server ends the script only after it has said that it does, and is busy until then.
	wait_until 5 server_answers
	is_held a
	wait_until 5 is_renewed a 9000
	let_go
	ended_with 0 "$holder"
	said_nothing
	no_keys
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

@test "a server that says BUSY: a waiter with time left gets the lock" {
	own_server --lua-time-limit 50
	be_busy
	wait_until 10 says_busy
	in_background rlock run -w 60s a -- touch ran
	waiter=$PID
	stays 0.7 is_running "$waiter"
	says_busy
	redis_says OK script kill
	ended_with 0 "$waiter"
	[ -e ran ]
	no_keys
}

@test "a lock is held on over a CLIENT PAUSE that is shorter than the lease" {
	hold_and_listen a -t 6s
	redis client pause 1000 all
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "CLIENT KILL of the holder's connections: the lock stays held, and is released" {
	hold_and_listen a -t 3s
	for _ in 1 2 3 4; do
		redis client kill type normal
		stays 0.9 is_held a
	done
	let_go
	ended_with 0
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
	took_less 8 ended_with 0
	ended_with 0 "$holder"
	said_nothing
	[ -e ran ]
}

# ---- full ----

@test "a server that is full: a clear error, and no lock" {
	own_server
	redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	assert_output --regexp '^rlock: a: .*memory'
	[ ! -e ran ]
	no_keys
}

@test "a server that gets full meanwhile: the lock is renewed and released" {
	own_server
	hold_and_listen a -t 3s
	redis config set maxmemory 1
	stays 3.5 is_held a
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a full server: one of two holds of an owner is released as well" {
	own_server
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
	[ "${#lines[@]}" -eq 1 ]
	assert_output --regexp '^rlock: a: '
	[ "$(redis dump a)" = "$before" ]
	redis_says -1 pttl a
	redis_says 1 dbsize
	[ ! -e ran ]
}

@test "a key that is a string is refused and left alone" {
	refuses_kind set a value
}

@test "a key that is a list is refused and left alone" {
	refuses_kind rpush a value
}

@test "a key that is a set is refused and left alone" {
	refuses_kind sadd a value
}

@test "a key that is a read/write lock is refused and left alone" {
	refuses_kind hset a mode read somebody 1
}

# ---- a replica ----

# refused_by_replica OPTION...: by each kind of lock.
refused_by_replica() {
	local verb
	for verb in run fair rlock wlock; do
		run -69 --separate-stderr rlock "$verb" "$@" a -- touch ran
		assert_equal "$stderr" "rlock: a: $RLOCK_URL?db=0 is a replica: it can grant no lock: name its master, or its sentinels: READONLY You can't write against a read only replica."
		[ ! -e ran ]
	done
}

@test "a replica is refused with 69 and its name, whether the lock is held or free" {
	own_server
	redis replicaof 127.0.0.1 1
	refused_by_replica
	refused_by_replica -n
	redis replicaof no one
	redis hset a somebody:1 1
	redis replicaof 127.0.0.1 1
	refused_by_replica
	refused_by_replica -n
	refused_by_replica -w 100ms
	redis replicaof no one
	redis del a
	redis hset a mode read somebody:1 1
	redis replicaof 127.0.0.1 1
	refused_by_replica -w 100ms
	redis replicaof no one
	redis del a
	redis set a value
	redis replicaof 127.0.0.1 1
	refused_by_replica
}

@test "a replica that has lost its master, and does not say what it knows, is refused by its name" {
	own_server --replica-serve-stale-data no
	redis replicaof 127.0.0.1 1
	run -69 rlock run a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	assert_output --partial "rlock: a: $RLOCK_URL?db=0 is a replica: it can grant no lock"
	[ ! -e ran ]
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

@test "a server that turns into a replica while the lock is held: the command is stopped in time" {
	own_server
	hold_with_family a -t 3s
	wait_until 5 is_renewed a 1000
	redis replicaof 127.0.0.1 1
	end=$(lease_end_ms a)
	watch_family 5
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at .*READONLY'
}
