#!/usr/bin/env bats
# Waiters for permits: which of them is next, what wakes it, and what is left of one that is gone. Which of Java's
# waiters are notified, and of what.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/permits

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "a release notifies Java's waiters of how many permits are free, and those only when one is" {
	record_channel 'redisson_sc:{a}'
	run -0 rlock sem --permits 3 a -- true
	run -0 rlock sem --permits 3 --take 2 a -- true
	# The first one found no counter, as RSemaphore.trySetPermits does.
	assert_equal "$(show_channel 'redisson_sc:{a}')" '2 3 3'
}

@test "waiters are woken in the order in which they came" {
	local i
	hold_permit 1 a
	for i in 1 2 3; do
		in_background rlock sem --permits 1 a -- sh -c 'echo "$1" >>turns' sh "$i"
		wait_until 5 has_waiters a "$i"
	done
	let_go
	all_ended_with 0
	assert_equal "$(cat turns)" '1
2
3'
	is_whole a 1
}

@test "a waiter is woken at once by a release, and by one of Java" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- until_let_go
	wait_until 5 has_waiters a 1
	redis eval 'redis.call("incrby", KEYS[1], 1) redis.call("publish", KEYS[2], 1)' 2 a 'redisson_sc:{a}'
	# By itself it would look at the end of the lease.
	wait_until 5 has_held a 2
	let_go
	all_ended_with 0
	has_free a 2
}

@test "a waiter that needs several permits gets them, though others come and take one each" {
	local i
	hold_permit 2 a
	in_background rlock sem --permits 2 --take 2 a -- touch got
	wait_until 5 has_waiters a 1
	let_pass 2.1
	for i in 1 2 3; do
		in_background sh -c 'until [ -e got ]; do rlock sem --permits 2 a -- true; done'
	done
	let_go
	wait_until 10 file_exists got
	all_ended_with 0
	is_whole a 2
}

@test "a waiter that is killed costs those behind it nothing" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- true
	local dead=$PID
	wait_until 5 has_waiters a 1
	start_guest next sem a -v --permits 1
	wait_until 5 has_waiters a 2
	wait_until 5 has_listeners 2
	kill_with_renewers "$dead"
	# A release that comes before the server has seen that wakes it, and the next one a while later.
	wait_until 5 has_listeners 1
	let_go
	enters_woken next
	ended_with 0
	wait_until 5 is_whole a 1
}

@test "permits are not kept for a waiter that needs more than there are" {
	run -0 rlock sem --permits 3 --resize a
	in_background sh -c 'exec rlock sem --permits 5 --take 5 a -- touch served 2>said' sh
	wait_until 5 has_waiters a 1
	# By then free permits are kept for a waiter that needs several.
	let_pass 2.5
	for _ in 1 2 3; do
		run -0 rlock sem --permits 3 -w 4s a -- true
	done
	run -0 rlock sem --permits 3 -n a -- true
	[ ! -e served ]
	grep -q 'has 3 permits in all, and --permits says 5' said
}
