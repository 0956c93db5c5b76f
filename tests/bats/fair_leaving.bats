#!/usr/bin/env bats
# bats file_tags=long
# Calls that do not acquire a fair lock: turned away at once or after a while, or ended by a signal while they wait. Each
# leaves the queue as it was without it.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- turned away ----

@test "a call that does not wait is turned away without a word, and leaves no trace" {
	local before
	start_holder r0 fair a
	queue_waiter r1 a
	before=$(redis zrange 'redisson_lock_timeout:{a}' 0 -1; queue_owners a; redis hkeys 'rlock_waiters:{a}')
	run -75 rlock fair -n a -- true
	assert_output ''
	run -75 rlock fair -w 0 a -- true
	assert_output ''
	assert_equal "$(redis zrange 'redisson_lock_timeout:{a}' 0 -1; queue_owners a; redis hkeys 'rlock_waiters:{a}')" \
		"$before"
	let_all_leave r0 r1
	nothing_is_left
}

@test "a call that does not wait leaves no queue where there was none" {
	start_holder r0 fair a
	run -75 rlock fair -n a -- true
	has_no_queue a
	run -9 rlock fair -n -E 9 a -- true
	has_no_queue a
}

@test "a call that does not wait does not pass the queue by, though the lock is free" {
	keep_head a
	run -75 rlock fair -n a -- true
	assert_output ''
	assert_equal "$(queue_names a)" J1
	is_free a
	run -75 rlock fair -v -n a -- true
	assert_output --partial "kept for the next waiter, $JAVA_CLIENT:1"
}

@test "a call that waits for a while does not pass the queue by, and says for whose turn the lock is kept" {
	local start
	keep_head a
	start=$(now_ms)
	run -75 rlock fair -w 1200ms a -- true
	(($(now_ms) - start >= 1200 && $(now_ms) - start < 4000))
	assert_one_line "^rlock: a: timed out after 1\.2s: kept for the next waiter, $JAVA_CLIENT:1: give a longer --wait\$"
	assert_equal "$(queue_names a)" J1
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 1
	is_free a
}

@test "one of ours that is next is named by its note, and not passed by" {
	start_holder r0 fair a
	queue_waiter r1 --note 'nightly backup' a
	wait_until 5 has_just_looked a r1
	stop_waiters "${PIDS[r1]}"
	let_leave r0
	is_free a
	run -75 rlock fair -n a -- true
	run -75 rlock fair -w 100ms a -- true
	assert_one_line "^rlock: a: timed out after 100ms: kept for the next waiter, nightly backup \(.*:${PIDS[r1]}\): give a longer --wait\$"
	continue_waiters "${PIDS[r1]}"
	await_entry r1
	let_leave r1
	nothing_is_left
}

@test "a plain lock is no part of the line, and passes it by" {
	keep_head a
	run -0 rlock run -n a -- true
	assert_equal "$(queue_names a)" J1
}

@test "a waiter whose time is over says which holder had the lock, and has left the queue" {
	start_holder r0 fair a --note 'the holder'
	run -75 rlock fair -w 300ms a -- true
	assert_one_line '^rlock: a: timed out after 300ms: held by the holder \(.*\), for [0-9.]+s: give a longer --wait, or end that job$'
	has_no_queue a
	run -9 rlock fair -E 9 -w 50ms a -- true
	run -75 rlock fair -q -w 50ms a -- true
	assert_output ''
	has_no_queue a
	assert_equal "$(redis pubsub channels)" ''
}

@test "a waiter that gives up leaves the others in the queue as they were" {
	local before
	start_holder r0 fair a
	queue_waiter r1 a
	queue_waiter r2 -w 2500ms a
	queue_waiter r3 a
	before=$(redis zscore 'redisson_lock_timeout:{a}' "$(owner_in_queue a r3)")
	ended_with 75 "${PIDS[r2]}"
	assert_equal "$(queue_names a)" 'r1 r3'
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 2
	# The two, and when the line was last looked at.
	assert_equal "$(redis hlen 'rlock_waiters:{a}')" 3
	assert_equal "$(redis zscore 'redisson_lock_timeout:{a}' "$(owner_in_queue a r3)")" "$before"
	let_all_leave r0 r1 r3
	nothing_is_left
}

@test "a verbose caller is told after a second for which holder it waits" {
	start_holder r0 fair a --note 'nightly backup'
	run -75 rlock fair -v -w 3s a -- true
	assert_equal "$(grep -c 'waiting for' <<<"$output")" 1
	assert_line --regexp '^rlock: a: waiting for nightly backup, held for [0-9.]+s, position 1 in the queue$'
	let_leave r0
	keep_head b
	run -75 rlock fair -v -w 3s b -- true
	assert_line --regexp "^rlock: b: waiting for a holder without a note, as Java's are"
}

# ---- leaving the queue ----

@test "a signal ends a waiter, and takes it out of the queue" {
	local signal
	start_holder r0 fair a
	queue_waiter r1 a
	for signal in TERM:143 INT:130 HUP:129 QUIT:131; do
		queue_waiter r2 a
		queue_waiter r3 a
		kill -s "${signal%:*}" "${PIDS[r2]}"
		ended_with "${signal#*:}" "${PIDS[r2]}"
		assert_equal "$(queue_names a)" 'r1 r3'
		assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 2
		assert_equal "$(redis hlen 'rlock_waiters:{a}')" 3
		kill -s "${signal%:*}" "${PIDS[r3]}"
		ended_with "${signal#*:}" "${PIDS[r3]}"
		assert_equal "$(queue_names a)" r1
	done
	kill -s TERM "${PIDS[r1]}"
	ended_with 143 "${PIDS[r1]}"
	has_no_queue a
	let_leave r0
	nothing_is_left
}

@test "a signal that comes while the lock is being acquired leaves neither a lock nor a position" {
	local round
	for round in {1..25}; do
		start_holder r0 fair a
		queue_waiter "s$round" a
		touch out-r0
		kill -s TERM "${PIDS["s$round"]}"
		wait_until 5 is_gone "${PIDS["s$round"]}"
		wait_until 5 is_gone "${PIDS[r0]}"
		wait_until 5 no_keys
		rm -f in-r0 out-r0
	done
	nothing_is_left
}

@test "the end of the process that a lock is for ends the wait for it" {
	local script
	start_holder r0 fair a
	in_background bash -c 'rlock fair --pid $$ a & wait; exit 9'
	script=$PID
	wait_until 5 has_in_queue a 1
	queue_waiter r2 a
	kill -KILL "$script"
	queue_becomes 8 a r2
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 1
	let_all_leave r0 r2
	nothing_is_left
}

@test "when the head leaves while the lock is free the next one is woken" {
	# r1 is next for "a", which is free, and does without it as long as it has not got "b".
	for signal in TERM INT; do
		rm -f in-* out-*
		start_holder r0 fair b
		queue_waiter r1 a b
		queue_waiter r2 a
		assert_equal "$(queue_names a)" 'r1 r2'
		is_free a
		is_woken_by a r2 kill -s "$signal" "${PIDS[r1]}"
		assert_equal "$(queue_names b)" ''
		let_leave r2
		let_leave r0
		nothing_is_left
	done
}

@test "when the head's wait is over while the lock is free the next one is woken" {
	local best=10000 late
	for _ in 1 2 3; do
		rm -f in-* out-*
		start_holder r0 fair b
		queue_waiter r1 -w 2500ms a b
		queue_waiter r2 a
		ended_with 75 "${PIDS[r1]}"
		late=$(now_ms)
		await_entry r2
		late=$(($(cut -c 1-13 in-r2) - late))
		((late > best)) || best=$late
		let_leave r2
		let_leave r0
	done
	((best < 500)) || fail "entered $best ms later"
	nothing_is_left
}
