#!/usr/bin/env bats
# bats file_tags=long
# The order in the queue of a fair lock: each waiter in its turn, be it an rlock or a thread of Java's, and what a head that
# is slow, gone or late does to those after it.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- in order ----

@test "of fifteen waiters each one gets in when it is its turn, one at a time" {
	local -a all=()
	start_holder r0 fair a
	for number in {1..15}; do
		all+=("r$number")
		queue_waiter "r$number" a
	done
	assert_equal "$(queue_names a)" "${all[*]}"
	let_leave r0
	while [ ${#all[@]} -gt 0 ]; do
		await_entry "${all[0]}"
		assert_equal "$(queue_names a)" "${all[*]:1}"
		for party in "${all[@]:1}"; do
			is_waiting "$party"
		done
		let_leave "${all[0]}"
		all=("${all[@]:1}")
	done
	nothing_is_left
}

@test "rlock and Java's threads are in one queue, and its order is kept" {
	java_locks J1 a
	queue_waiter r1 a
	java_locks J2 a >/dev/null
	java_locks J3 a >/dev/null
	queue_waiter r2 a
	queue_waiter r3 a
	java_locks J4 a >/dev/null
	assert_equal "$(queue_names a)" 'r1 J2 J3 r2 r3 J4'
	record_messages
	assert_equal "$(java_unlocks J1 a)" 1
	await_entry r1
	let_leave r1
	for party in J2 J3; do
		show_messages | grep -qxF "$(channel a):$JAVA_CLIENT:${party#J} 0"
		is_waiting r2
		assert_equal "$(java_locks "$party" a)" ''
		java_has_lock a "$party"
		assert_equal "$(java_unlocks "$party" a)" 1
	done
	await_entry r2
	is_waiting r3
	assert_not_equal "$(java_locks J4 a)" ''
	let_leave r2
	await_entry r3
	let_leave r3
	assert_equal "$(java_locks J4 a)" ''
	assert_equal "$(java_unlocks J4 a)" 1
	for key in a 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}'; do
		is_free "$key"
	done
}

@test "Java's release wakes the rlock that is next" {
	java_locks J1 a
	queue_waiter r1 a
	queue_waiter r2 a
	is_woken_by a r1 java_unlocks J1 a
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "a thread of Java's that is next holds the line up until its time is over" {
	keep_head a
	queue_waiter r1 a
	queue_waiter r2 a
	stays 2.2 is_waiting r1
	assert_equal "$(queue_names a)" 'J1 r1 r2'
	set_deadline a J1 3000
	stays 0.8 is_waiting r1
	await_entry r1 8
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "a thread of Java's that listens keeps its position though its time is over, and is woken" {
	keep_head a -1000
	java_listens a J1
	record_messages
	run -75 rlock fair -n a -- true
	assert_equal "$(queue_names a)" J1
	show_messages | grep -qxF "$(channel a):$JAVA_CLIENT:1 0"
	queue_waiter r1 a
	# Its clock is slow: it does not know that its time is over.
	assert_equal "$(java_locks J1 a -5000)" ''
	java_has_lock a J1
	is_woken_by a r1 java_unlocks J1 a
	let_leave r1
	is_free "$(queue_key a)"
}
