#!/usr/bin/env bats
# Read and write locks: readers share, a writer is alone, and waiters get in when they may. The files
# readwrite_*.bats have the rest.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "ten readers are in together, and one writer alone" {
	local guest
	for guest in 1 2 3 4 5 6 7 8 9 10; do
		start_guest "r$guest" rlock a
	done
	wait_until 5 all_are_inside r1 r2 r3 r4 r5 r6 r7 r8 r9 r10
	assert_equal "$(redis hlen a)" 11
	run -75 rlock wlock -n a -- true
	let_go
	all_ended_with 0
	no_keys
}

@test "while a writer is in no other gets in" {
	admit_guest w wlock a
	local before
	before=$(show_contents)
	run -75 rlock rlock -n a -- touch ran
	assert_output ''
	run -75 rlock wlock -n a -- touch ran
	assert_output ''
	run -75 rlock rlock --wait 0 a -- touch ran
	run -9 rlock rlock -n -E 9 a -- touch ran
	run -0 rlock wlock -n -E 0 a -- touch ran
	refute file_exists ran
	assert_equal "$(show_contents)" "$before"
}

@test "while a reader is in no writer gets in" {
	admit_guest r rlock a
	local before
	before=$(show_contents)
	run -75 rlock wlock -n a -- touch ran
	assert_output ''
	run -0 rlock wlock -n -E 0 a -- touch ran
	refute file_exists ran
	assert_equal "$(show_contents)" "$before"
	run -0 rlock rlock -n a -- touch ran
	file_exists ran
	assert_equal "$(show_contents)" "$before"
}

@test "a waiter whose time is over is told which holder has the lock, and leaves it as it was" {
	local before
	admit_guest w wlock a --note 'nightly import'
	before=$(show_contents)
	run -75 rlock rlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by nightly import \($UUID:$PID:write\), for [0-9.]+s: give a longer --wait, or end that job\$"
	run -75 rlock wlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by nightly import \($UUID:$PID:write\), for [0-9.]+s: give a longer --wait, or end that job\$"
	assert_equal "$(show_contents)" "$before"
	let_guest_out w
	ended_with 0
	admit_guest r rlock a --note 'a report'
	before=$(show_contents)
	run -75 rlock wlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by a report \($UUID:$PID\), for [0-9.]+s: give a longer --wait, or end that job\$"
	run -7 rlock wlock -E 7 -w 50ms a -- touch ran
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "a wait ends when its time is over, and not before" {
	local start took
	admit_guest r rlock a
	start=$(now_ms)
	run -75 rlock wlock -w 400ms a -- true
	took=$(($(now_ms) - start))
	((took >= 400 && took < 6000)) || fail "took $took ms"
	let_guest_out r
	ended_with 0
	admit_guest w wlock a
	start=$(now_ms)
	run -75 rlock rlock -w 400ms a -- true
	took=$(($(now_ms) - start))
	((took >= 400 && took < 6000)) || fail "took $took ms"
}

# wakes_five_times VERB VERB: the lease of the holder has 30 s to go when it leaves, and a writer that waits for readers looks
# every 2 s.
wakes_five_times() {
	local turn first
	for turn in 1 2 3 4 5; do
		admit_guest "first$turn" "$1" a
		first=$PID
		queue_guest "second$turn" "$2" a -v
		let_guest_out "first$turn"
		enters_woken "second$turn"
		let_guest_out "second$turn"
		ended_with 0 "$first"
		ended_with 0
	done
	no_keys
}

@test "a writer is woken when the reader leaves" {
	wakes_five_times rlock wlock
}

@test "a writer that leaves lets all readers in at once" {
	admit_guest w wlock a
	local guest
	for guest in 1 2 3 4 5 6; do
		queue_guest "r$guest" rlock a
	done
	let_guest_out w
	wait_until 5 all_are_inside r1 r2 r3 r4 r5 r6
}

@test "what a Java reader holds keeps a writer out, and lets readers in" {
	redis hset a mode read "$JAVA" 1 >/dev/null
	redis pexpire a 20000 >/dev/null
	redis set "{a}:$JAVA:rwlock_timeout:1" 1 px 20000 >/dev/null
	local before
	before=$(show_contents)
	run -75 rlock wlock -w 50ms a -- true
	assert_one_line "^rlock: a: .*$JAVA"
	run -0 rlock rlock -n a -- true
	assert_equal "$(show_contents)" "$before"
	# Its own lease counts again, not ours of 30 s.
	ttl_between 10000 a 20000
}

@test "what a Java writer holds keeps all out until it publishes" {
	redis hset a mode write "$JAVA:write" 1 >/dev/null
	redis pexpire a 30000 >/dev/null
	local before
	before=$(show_contents)
	run -75 rlock rlock -n a -- true
	run -75 rlock wlock -w 50ms a -- true
	assert_one_line "^rlock: a: .*$JAVA:write"
	assert_equal "$(show_contents)" "$before"
	queue_guest r rlock a
	redis del a >/dev/null
	redis publish 'redisson_rwlock:{a}' 1 >/dev/null
	wait_until 5 is_inside r
}
