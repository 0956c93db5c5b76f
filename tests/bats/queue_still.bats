#!/usr/bin/env bats
# bats file_tags=long
# The queue of a fair lock when a waiter in it stands still, or the server, and when Java's threads have wrong clocks:
# a waiter that loses its position has it again.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/own_servers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- standing still ----

@test "a waiter that stands still for a while loses its position, and has it again when it goes on" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3
	stop_waiters "${PIDS[r1]}"
	queue_becomes 8 a r2 r3
	continue_waiters "${PIDS[r1]}"
	queue_becomes 5 a r1 r2 r3
	let_leave r0
	take_turns r1 r2 r3
	nothing_is_left
}

@test "one that stood still while others had their turns comes before those that came after it" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4
	stop_waiters "${PIDS[r1]}" "${PIDS[r3]}"
	let_leave r0
	await_entry r2 8
	continue_waiters "${PIDS[r1]}" "${PIDS[r3]}"
	queue_becomes 5 a r1 r3 r4
	wait_until 5 is_heard_of a r3
	let_leave r2
	take_turns r1 r3 r4
	nothing_is_left
}

@test "all of them that stood still have their positions again, whichever goes on first" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4
	stop_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}"
	queue_becomes 8 a r4
	continue_waiters "${PIDS[r3]}"
	queue_becomes 5 a r3 r4
	continue_waiters "${PIDS[r1]}"
	queue_becomes 5 a r1 r3 r4
	continue_waiters "${PIDS[r2]}"
	queue_becomes 5 a r1 r2 r3 r4
	let_leave r0
	take_turns r1 r2 r3 r4
	nothing_is_left
}

@test "a waiter that comes while the first ones stand still does not get their positions" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3
	stop_waiters "${PIDS[r1]}"
	queue_becomes 8 a r2 r3
	queue_waiter r4 a
	java_locks J5 a >/dev/null
	continue_waiters "${PIDS[r1]}"
	queue_becomes 5 a r1 r2 r3 r4 J5
	java_gives_up J5 a
	let_leave r0
	take_turns r1 r2 r3 r4
	nothing_is_left
}

@test "a server that stands still for six seconds drops no waiter, and keeps the order" {
	own_server
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4 r5
	kill -STOP "$SERVER_PID"
	let_pass 6
	kill -CONT "$SERVER_PID"
	stays 2.5 queue_is a r1 r2 r3 r4 r5
	let_leave r0
	take_turns r1 r2 r3 r4 r5
	nothing_is_left
}

@test "a server that stands still while the lock is free keeps the order" {
	own_server
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4
	stop_waiters "${PIDS[r1]}"
	let_leave r0
	is_free a
	kill -STOP "$SERVER_PID"
	continue_waiters "${PIDS[r1]}"
	let_pass 4.5
	kill -CONT "$SERVER_PID"
	take_turns r1 r2 r3 r4
	nothing_is_left
}

@test "a waiter that is alone in the queue acquires the free lock at once after it stood still" {
	start_holder r0 fair a
	queue_waiter r1 a
	wait_until 5 says_it_listens a r1 1
	stop_waiters "${PIDS[r1]}"
	let_leave r0
	# For longer than there may be no sign of life.
	let_pass 3.5
	continue_waiters "${PIDS[r1]}"
	within 1.5 is_inside r1
	let_leave r1
	nothing_is_left
}

# ---- Java's clocks ----

@test "a Java client whose clock is an hour fast drops our heads, and they come back in their order" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4
	# A waiter that does not listen yet retries at once, and would be back.
	wait_until 5 says_it_listens a r4 1
	assert_equal "$(queue_after java_tries J9 a 3600000)" ''
	queue_becomes 5 a r1 r2 r3 r4
	let_leave r0
	take_turns r1 r2 r3 r4
	nothing_is_left
}

@test "a Java client whose clock is an hour fast drops some, and stands behind the others: all have their turns" {
	start_holder r0 fair a
	queue_waiters r1 r2
	# It waits for hours: so the fast clock drops those in front of it, and no others.
	java_locks J3 a 0 7200000 >/dev/null
	queue_waiters r4 r5
	assert_equal "$(queue_after java_locks J6 a 3600000)" 'J3 r4 r5 J6'
	queue_becomes 5 a r1 r2 J3 r4 r5 J6
	let_leave r0
	take_turns r1 r2
	assert_equal "$(java_locks J3 a)" ''
	is_woken_by a r4 java_unlocks J3 a
	let_leave r4
	await_entry r5
	let_leave r5
	assert_equal "$(java_locks J6 a)" ''
	java_unlocks J6 a >/dev/null
	is_free a
	is_free "$(queue_key a)"
}

@test "a Java client whose clock is an hour fast may acquire the lock while it is free, and then it is the queue's turn" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3
	stop_waiters "${PIDS[r1]}"
	let_leave r0
	assert_equal "$(java_locks J9 a 3600000)" ''
	continue_waiters "${PIDS[r1]}"
	queue_becomes 5 a r1 r2 r3
	is_woken_by a r1 java_unlocks J9 a
	take_turns r1 r2 r3
	nothing_is_left
}

@test "Java clients with fast clocks that come again and again do not mix up the queue" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4 r5 r6
	for _ in {1..15}; do
		java_tries J9 a 3600000 >/dev/null
		java_unlocks J9 a 3600000 >/dev/null
		let_pass 0.05
	done
	queue_becomes 5 a r1 r2 r3 r4 r5 r6
	let_leave r0
	take_turns r1 r2 r3 r4 r5 r6
	nothing_is_left
}

@test "Java's turns, which take five minutes off each score, drop none of ours" {
	local turn
	java_locks J1 a
	for turn in 2 3 4 5; do
		java_locks "J$turn" a >/dev/null
	done
	queue_waiters r1 r2
	for turn in 2 3 4 5; do
		java_unlocks "J$((turn - 1))" a >/dev/null
		assert_equal "$(java_locks "J$turn" a)" ''
	done
	assert_equal "$(java_tries J9 a)" 1
	assert_equal "$(queue_names a)" 'r1 r2'
	is_woken_by a r1 java_unlocks J5 a
	take_turns r1 r2
	nothing_is_left
}
