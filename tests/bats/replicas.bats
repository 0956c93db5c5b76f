#!/usr/bin/env bats
# bats file_tags=long
# --replicas: what too few replicas have acknowledged is no lock.

# In single quotes stand whole scripts; each test is a subshell, and knows that. FAMILY is for watch_family.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/replicas
load ../lib/proxying

setup_file() { start_server; }

teardown_file() { stop_server; }

setup() {
	directory_setup
	replicated_servers
}

teardown() {
	kill -CONT "$REPLICA" 2>/dev/null || :
	watchful_teardown
}

is_empty() {
	[ "$(redis_at one dbsize)" = 0 ]
}

@test "when the command begins, as many replicas as are wanted have the lock" {
	run -0 rlock run --replicas 1 a -- ask_redis two/redis.sock exists a
	assert_output 1
	is_empty
}

@test "too few replicas: 69, no command, and no lock is left" {
	run -69 rlock run -n --replicas 2 a -- touch begun
	assert_one_line '^rlock: a: 1 of 2 replicas have acknowledged the lock in time$'
	assert [ ! -e begun ]
	is_empty
}

@test "every verb that locks can want replicas" {
	local verb
	for verb in run lock fair rlock wlock; do
		run -0 rlock "$verb" --replicas 1 a -- true
		run -69 rlock "$verb" -n --replicas 2 a -- touch begun
		is_empty
	done
	assert [ ! -e begun ]
	run -0 bash -c 'rlock lock --replicas 1 --pid $$ a && rlock renew --replicas 1 a && rlock unlock a'
	run -69 bash -c 'rlock lock --pid $$ a; rlock renew --replicas 2 a; code=$?; rlock unlock a; exit $code'
	is_empty
}

@test "permits of a semaphore can want replicas, and come back where there are too few" {
	run -0 rlock sem --replicas 1 --permits 3 --take 2 a -- ask_redis two/redis.sock get a
	assert_output 1
	run -0 rlock sem --replicas 1 --permits 3 a -- ask_redis two/redis.sock get a
	assert_output 2
	run -69 rlock sem -n --replicas 2 --permits 3 a -- touch begun
	assert_one_line '^rlock: a: 1 of 2 replicas have acknowledged the lock in time$'
	assert [ ! -e begun ]
	assert_equal "$(redis_at one get a)" 3
	assert_equal "$(redis_at one zcard '{a}:timeout')" 0
}

@test "a waiter tries again until there are enough replicas" {
	kill -STOP "$REPLICA"
	in_background rlock run -w 30s --replicas 1 a -- touch entered
	stays 1.5 is_running "$PID"
	assert [ ! -e entered ]
	kill -CONT "$REPLICA"
	ended_with 0 "$PID"
	assert [ -e entered ]
	is_empty
}

@test "the wait time is over before there are enough replicas: 69" {
	kill -STOP "$REPLICA"
	run -69 rlock run -w 1.5s --replicas 1 a -- touch begun
	assert_one_line '^rlock: a: 0 of 1 replicas have acknowledged the lock in time$'
	assert [ ! -e begun ]
	is_empty
}

@test "a replica that goes while the lock is held: the command is stopped before the lease ends, 76" {
	in_background rlock run -t 3s --replicas 1 a -- sh -c 'echo $$ >inner; exec until_let_go'
	wait_until 5 [ -s inner ]
	FAMILY=("$(<inner)")
	kill -STOP "$REPLICA"
	end=$(SERVER_SOCKET=$PWD/one/redis.sock lease_end_ms a)
	watch_family 10
	assert_between 1 "$LAST_SEEN_MS" "$end"
	ended_with 76 "$PID"
}

@test "a replica that is away for less than the lease is nothing" {
	in_background rlock run -t 6s --replicas 1 a -- until_let_go
	wait_until 5 is_held_at two a
	kill -STOP "$REPLICA"
	stays 2.5 is_running "$PID"
	kill -CONT "$REPLICA"
	stays 4.5 is_running "$PID"
	let_go
	ended_with 0 "$PID"
	is_empty
}

@test "a user without the right to WAIT is told, and no lock is left" {
	redis_at one acl setuser default -wait >/dev/null
	run -77 rlock run --replicas 1 a -- touch begun
	assert_one_line "^rlock: a: denied by the server: .*'wait'.*[+]wait$"
	assert [ ! -e begun ]
	is_empty
}

@test "a short connect timeout does not cut the wait for replicas" {
	run -69 rlock run -n --connect-timeout 0.5s --replicas 2 a -- touch begun
	assert_one_line '^rlock: a: [01] of 2 replicas have acknowledged the lock in time$'
	is_empty
}

@test "a server that becomes a replica before replicas have acknowledged a lock grants none: 69" {
	ln -s "$PWD/one/redis.sock" through
	SERVER_SOCKET=$PWD/through start_proxy
	# So that the server knows the script.
	run -0 rlock run a -- true
	proxy hold-reply evalsha
	in_background sh -c 'exec rlock run -n --replicas 1 a -- touch begun 2>said'
	wait_until 5 is_held_at one a
	redis_at one replicaof 127.0.0.1 1 >/dev/null
	proxy release
	ended_with 69
	grep -q "^rlock: a: .* is a replica: it can grant no lock: name its master" said
	assert [ ! -e begun ]
	redis_at one replicaof no one >/dev/null
	redis_at one flushall >/dev/null
}
