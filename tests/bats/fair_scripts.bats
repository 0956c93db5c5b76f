#!/usr/bin/env bats
# bats file_tags=long
# Fair locks without a command: of scripts, and of owners.

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

# ---- without a command ----

@test "a script has a fair lock until it unlocks it, and the next one is woken" {
	in_background bash -c 'rlock fair --pid $$ a; inside held; rlock unlock a; inside after'
	PIDS[script]=$PID
	await_entry held
	queue_waiter r1 a
	is_woken_by a r1 touch out-held
	let_leave r1
	touch out-after
	ended_with 0 "${PIDS[script]}"
	nothing_is_left
	no_hold_files
}

@test "a script that dies frees its fair lock, and the next one is woken" {
	in_background bash -c 'rlock fair --pid $$ a; inside held; exit 9'
	PIDS[script]=$PID
	await_entry held
	queue_waiter r1 a
	wait_until 5 has_just_looked a r1
	kill -KILL "${PIDS[script]}"
	within "$(wake_limit)" is_inside r1
	let_leave r1
	touch out-held
	nothing_is_left
}

@test "an owner waits in the queue, and has its turn" {
	start_holder r0 fair a
	queue_waiter r1 a
	in_background rlock fair --owner job-1 --lease 1m a
	PIDS[owner]=$PID
	wait_until 5 has_in_queue a 2
	queue_waiter r2 a
	let_leave r0
	await_entry r1
	is_running "${PIDS[owner]}"
	let_leave r1
	ended_with 0 "${PIDS[owner]}"
	is_waiting r2
	run -0 rlock unlock --owner job-1 a
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "two that wait for one owner are in the queue once, and each has a hold" {
	local first
	start_holder r0 fair a
	in_background rlock fair --owner job-1 --lease 1m a
	first=$PID
	wait_until 5 has_in_queue a 1
	in_background rlock fair --owner job-1 --lease 1m a
	wait_until 5 hears "$(channel a):$(redis lindex 'redisson_lock_queue:{a}' 0)" 2
	has_in_queue a 1
	let_leave r0
	ended_with 0 "$first"
	ended_with 0
	has_count a 2
	has_no_queue a
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	nothing_is_left
}

# hears CHANNEL COUNT: so many listen there.
hears() {
	[ "$(redis pubsub numsub "$1" | tail -n 1)" = "$2" ]
}
