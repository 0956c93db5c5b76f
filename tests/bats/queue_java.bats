#!/usr/bin/env bats
# bats file_tags=long
# Java's threads at the head of the queue for a free lock: one to whose channel no client listens is dead, and the others
# are not passed.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/replicas
load ../lib/queue

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	redis acl setuser default reset on nopass +@all '~*' '&*' >/dev/null
	watchful_teardown
}

# queue_java NAME PARTY...: Java's threads, with Redisson's waits, for a free lock; as if the one that had it had died.
queue_java() {
	local party
	java_locks J9 "$1" >/dev/null
	for party in "${@:2}"; do
		java_locks "$party" "$1" >/dev/null
	done
	redis del "$1" >/dev/null
	queue_is "$1" "${@:2}"
}

@test "dead waiters of Java's at the head of a free lock hold up the queue for seconds" {
	queue_java a J1 J2 J3
	start_waiter r1 a
	within 12 is_inside r1
	let_leave r1
	nothing_is_left
}

@test "a waiter of Java's that listens is not passed, and one behind it is not either" {
	queue_java a J1 J2
	java_listens a J1
	start_waiter r1 a
	stays 9 is_waiting r1
	queue_is a J1 J2 r1
	kill_waiter r1
}

@test "one that listens now and then is not passed" {
	local listener
	queue_java a J1
	start_waiter r1 a
	for _ in 1 2 3; do
		stays 3.5 is_waiting r1
		java_listens a J1
		listener=$PID
		stays 2.5 is_waiting r1
		kill "$listener"
		wait_until 5 is_gone "$listener"
	done
	queue_is a J1 r1
	kill_waiter r1
}

@test "where the user may not ask for listeners, none is passed" {
	redis acl setuser default '-pubsub' >/dev/null
	queue_java a J1
	start_waiter r1 a
	stays 9 is_waiting r1
	queue_is a J1 r1
	kill_waiter r1
}

@test "where a replica is connected, at which they may listen, none is passed" {
	local SERVER_SOCKET=$SERVER_SOCKET
	replicated_servers
	SERVER_SOCKET=$PWD/one/redis.sock
	queue_java a J1
	start_waiter r1 a
	stays 9 is_waiting r1
	queue_is a J1 r1
	kill_waiter r1
}

@test "unlock --force of a free lock removes dead waiters from its queue, and says so" {
	queue_java a J1 J2
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: not held: dead waiters were removed from its queue$'
	nothing_is_left
}
