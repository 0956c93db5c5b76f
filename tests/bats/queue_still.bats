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
