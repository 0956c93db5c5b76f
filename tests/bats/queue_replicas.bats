#!/usr/bin/env bats
# bats file_tags=long
# The queue of a fair lock when a replica takes over, to which no waiter is subscribed yet.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's, MASTER
# replicas.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2119,SC2120,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/replicas

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what the tests share ----

# queue_at_replica NAME...: a holder, r0, and after it these, which reach the servers by a path of their own. All of
# it is known to the replica.
queue_at_replica() {
	local party
	replicated_servers
	SERVER_SOCKET=$PWD/one/redis.sock
	ln -s one/redis.sock waiters.sock
	start_holder r0 fair a
	RLOCK_URL=unix://$PWD/waiters.sock queue_waiters "$@"
	SERVER_SOCKET=$PWD/two/redis.sock
	wait_until 5 queue_is a "$@"
	for party; do
		wait_until 5 says_it_listens a "$party" 1
	done
}

kill_master() {
	kill -s KILL "$MASTER"
	wait_until 5 is_gone "$MASTER"
}

# The waiters find the replica only now.
let_waiters_reach_replica() {
	ln -s two/redis.sock moved.sock
	mv moved.sock waiters.sock
}

# ---- takeover ----

@test "a queue keeps its order when a replica takes over after an outage, and a newcomer is behind it" {
	queue_at_replica r1 r2 r3 r4 r5
	kill_master
	let_pass 2.5
	promote_replica
	# The first request for this lock there, while none waits there.
	let_leave r0
	run -75 rlock fair -n a -- true
	queue_is a r1 r2 r3 r4 r5
	let_waiters_reach_replica
	await_entry r1 15
	take_turns r1 r2 r3 r4 r5
}

@test "a waiter that was killed while a replica took over is out of the queue soon after" {
	queue_at_replica r1 r2
	kill_master
	kill_waiter r1
	promote_replica
	let_waiters_reach_replica
	let_leave r0
	await_entry r2 30
	take_turns r2
}
