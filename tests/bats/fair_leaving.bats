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
