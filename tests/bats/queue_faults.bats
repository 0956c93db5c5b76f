#!/usr/bin/env bats
# bats file_tags=long
# The queue of a fair lock when answers get lost, and when a server is full or comes back empty.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/queue
load ../lib/own_servers

setup_file() {
	start_server
	# From here on the server knows the scripts: a request whose reply gets lost has been carried out.
	rlock fair warm -- rlock fair -w 1ms warm -- true
}

teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- answers that get lost ----

# Stands in each try to get in, and in no other request.
TRY='redisson_lock_token:{a}'

@test "the answer to the request that joined the queue is lost: the waiter is in it once, and acquires the lock once" {
	start_holder r0 fair a
	queue_waiter r1 a
	start_proxy
	proxy drop-reply "$TRY" 2
	queue_waiter r2 a
	wait_until 5 faults_happened
	queue_becomes 5 a r1 r2
	assert_equal "$(redis zcard "$(deadlines_key a)")" 2
	stays 0.5 queue_is a r1 r2
	let_leave r0
	take_turns r1 r2
	nothing_is_left
}

@test "the answer to the one whose turn it is is lost: the lock is acquired once, and the queue goes on" {
	start_holder r0 fair a
	start_proxy
	in_background rlock fair a -- sh -c 'ask_redis "$SERVER_SOCKET" hvals a >counts; exec inside r1'
	PIDS[r1]=$PID
	wait_until 5 is_last a r1
	RLOCK_URL=unix://$SERVER_SOCKET queue_waiter r2 a
	proxy drop-reply "$TRY"
	let_leave r0
	await_entry r1
	faults_happened
	assert_equal "$(cat counts)" 1
	assert_equal "$(queue_names a)" r2
	take_turns r1 r2
	nothing_is_left
}

# r1 listens for its turn: its second request was answered.
said_to_come_again() {
	[ "$(redis pubsub numsub "$(channel a):$(owner_in_queue a r1)" | tail -n 1)" = 1 ]
}

@test "a waiter that is cut off has its position again, and is woken" {
	start_holder r0 fair a
	start_proxy
	queue_waiter r1 a
	RLOCK_URL=unix://$SERVER_SOCKET queue_waiter r2 a
	queue_waiter r3 a
	for _ in 1 2 3; do
		proxy cut
		stays 0.5 queue_is a r1 r2 r3
	done
	wait_until 5 said_to_come_again
	is_woken_by a r1 let_leave r0
	take_turns r1 r2 r3
	nothing_is_left
}

@test "a waiter in a black hole loses its position, and has it again after it" {
	start_holder r0 fair a
	start_proxy
	queue_waiter r1 a
	RLOCK_URL=unix://$SERVER_SOCKET queue_waiter r2 a
	proxy blackhole on
	queue_becomes 8 a r2
	proxy blackhole off
	proxy cut
	queue_becomes 8 a r1 r2
	# What it sent into the hole may have come out of it late; this is itself.
	wait_until 8 is_listened_to a r1
	let_leave r0
	take_turns r1 r2
	nothing_is_left
}

# ---- a server that is full, or comes back empty ----

@test "on a full server a new waiter is told so, and joins no queue" {
	own_server
	start_holder r0 fair a
	redis config set maxmemory 1 >/dev/null
	run -69 rlock fair -w 2s a -- true
	assert_one_line '^rlock: a: .*memory'
	has_no_queue a
	run -75 rlock fair -n a -- true
	let_leave r0
	no_keys
}

@test "on a server that was full for a while all waiters go on" {
	own_server
	start_holder r0 fair a
	queue_waiters r1 r2
	redis config set maxmemory 1 >/dev/null
	let_leave r0
	stays 2.5 is_waiting r1
	redis config set maxmemory 0 >/dev/null
	# One whose sign of life expired meanwhile has lost its position, and goes on all the same.
	let_all_leave r1 r2
	is_inside r1
	is_inside r2
	nothing_is_left
}

@test "a server that comes back empty: all waiters go on, in their order" {
	own_server
	for _ in 1 2 3; do
		rm -f in-* order
		start_holder r0 fair a -t 2s
		for party in r1 r2 r3 r4 r5; do
			queue_passer "$party" a
		done
		kill_server
		own_server
		ended_with 76 "${PIDS[r0]}"
		for party in r1 r2 r3 r4 r5; do
			ended_with 0 "${PIDS[$party]}"
		done
		assert_equal "$(tr '\n' ' ' <order)" 'r1 r2 r3 r4 r5 '
		nothing_is_left
	done
}
