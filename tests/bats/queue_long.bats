#!/usr/bin/env bats
# bats file_tags=long
# A long queue of a fair lock, when those that are near its head stand still.

# PIDS is queue.bash's.
# shellcheck disable=SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "a waiter that stands still near the head of a long queue holds up the others for some seconds only" {
	start_holder r0 fair a
	queue_waiters r{1..16}
	stop_waiters "${PIDS[r5]}"
	kill "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}" "${PIDS[r4]}"
	queue_becomes 8 a r{6..16}
	continue_waiters "${PIDS[r5]}"
	queue_becomes 5 a r{5..16}
	let_leave r0
	let_all_leave r{5..16}
	nothing_is_left
}

@test "when all waiters near the head of a long queue stand still, one behind them acquires the lock soon" {
	start_holder r0 fair a
	queue_waiters r{1..18}
	stop_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}" "${PIDS[r4]}" "${PIDS[r5]}"
	let_leave r0
	await_entry r6 9
	continue_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}" "${PIDS[r4]}" "${PIDS[r5]}"
	let_all_leave r{1..18}
	nothing_is_left
}
