#!/usr/bin/env bats
# bats file_tags=long
# Waiters and holders of a fair lock that are killed: how long the queue stands still, and what is left of them.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "a head that is killed holds up the queue for five seconds at most" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3
	wait_until 5 has_just_looked a r1
	kill_waiter r1
	let_leave r0
	within 8 is_inside r2
	take_turns r2 r3
	nothing_is_left
}

@test "six heads in a row that are killed hold up the queue no longer than one and a look of the next" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4 r5 r6 r7 r8
	for party in r1 r2 r3 r4 r5 r6; do
		kill_waiter "$party"
	done
	let_leave r0
	within 9 is_inside r7
	take_turns r7 r8
	nothing_is_left
}

@test "one that is killed in the middle of the queue costs no waiter anything" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3
	kill_waiter r2
	wait_until 8 is_overdue a r2
	let_leave r0
	await_entry r1
	is_woken_by a r3 let_leave r1
	let_leave r3
	nothing_is_left
}

@test "a Java client that joins a queue of dead waiters sleeps for seconds, and keeps its position" {
	local sleep_ms
	start_holder r0 fair a
	queue_waiters r1 r2
	wait_until 5 says_it_listens a r1 1
	wait_until 5 says_it_listens a r2 1
	kill_waiter r1
	kill_waiter r2
	let_leave r0
	sleep_ms=$(java_locks J1 a)
	((sleep_ms > 0 && sleep_ms <= 10000)) || fail "sleeps for $sleep_ms ms"
	(($(redis pttl 'redisson_lock_queue:{a}') > 3600000))
	(($(redis pttl 'redisson_lock_timeout:{a}') > 3600000))
	# By its clock the time is over.
	assert_equal "$(java_locks J1 a "$((sleep_ms + 1000))")" ''
	java_has_lock a J1
}

@test "a monitor of all channels hides no dead waiter" {
	start_holder r0 fair a
	queue_waiters r1 r2
	record_messages
	wait_until 10 has_long_listened a r2
	wait_until 5 has_just_looked a r1
	kill_waiter r1
	let_leave r0
	# As long as r1 counts as alive, which is three and a half seconds from its look, r2 would be out.
	within 3 is_inside r2
	let_leave r2
}

# have_all_looked PARTY...: each of them need not be heard of for two and a half seconds. There is a moment when three can say
# so, whenever each of them looks: of the two seconds between two looks, their longest pause lasts a third or more.
have_all_looked() {
	local party
	for party; do
		find_life_ms a "$party" && ((LIFE_MS > 2500)) || return
	done
}

@test "a release while all waiters are cut off leaves them their positions" {
	local party
	start_holder r0 fair a
	queue_waiters r1 r2 r3
	for party in r1 r2 r3; do
		wait_until 5 says_it_listens a "$party" 1
	done
	wait_until 10 have_all_looked r1 r2 r3
	stop_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}"
	for party in r1 r2 r3; do
		wait_until 5 is_stopped "${PIDS[$party]}"
	done
	redis client kill type pubsub >/dev/null
	let_leave r0
	run -75 rlock fair -n a -- true
	queue_is a r1 r2 r3
	for party in r1 r2 r3; do
		continue_waiters "${PIDS[$party]}"
	done
	take_turns r1 r2 r3
	nothing_is_left
}

@test "a holder that is killed with its renewer holds up the queue until its lease is over" {
	local end
	start_holder r0 fair a -t 3s
	queue_waiters r1 r2
	kill_waiter r0
	end=$(lease_end_ms a)
	await_entry r1 8
	(($(cut -c 1-13 in-r1) - end < 3000))
	take_turns r1 r2
	nothing_is_left
}
