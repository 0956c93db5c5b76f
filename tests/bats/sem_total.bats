#!/usr/bin/env bats
# How many permits a semaphore has in all: at the first call, when calls differ, and after --resize.

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

@test "a semaphore that is not there gets as many permits as are asked for, less those that are held" {
	redis zadd '{a}:timeout' "$(($(server_ms) + 60000))" java
	run -0 rlock sem -n --permits 3 a -- redis-cli -s "$SERVER_SOCKET" get a
	assert_output 1
	has_free a 2
	has_held a 1
}

@test "a total that differs is kept, with one warning that names both" {
	redis set a 2
	run -0 rlock sem --permits 3 a -- true
	assert_one_line '^rlock: a: has 2 permits in all, and --permits says 3: --resize changes it$'
	is_whole a 2
	run -0 rlock sem --permits 1 a -- true
	assert_one_line '^rlock: a: has 2 permits in all, and --permits says 1: --resize changes it$'
	is_whole a 2
	run -0 rlock sem --permits 2 a -- true
	assert_output ''
}

@test "the total is changed on purpose, while permits are held, too" {
	hold_permit 3 a --take 2
	run -0 rlock sem --permits 5 --resize a
	assert_output ''
	has_free a 3
	run -0 rlock sem --permits 1 --resize a
	has_free a -1
	run -75 rlock sem -n --permits 1 a -- true
	assert_output ''
	let_go
	ended_with 0
	is_whole a 1
	run -0 rlock sem --permits 4 --resize a b
	is_whole a 4
	is_whole b 4
}

@test "a total that is made less lets no waiter in until so many permits came back, and its waiters wait on" {
	hold_permit 2 a
	local first=$PID
	hold_permit 2 a
	in_background rlock sem --permits 2 a -- touch entered
	local waiter=$PID
	wait_until 5 has_waiters a 1
	run -0 rlock sem --permits 1 --resize a
	has_free a -1
	kill -TERM "$first"
	ended_with 143 "$first"
	has_free a 0
	stays 1 has_waiters a 1
	[ ! -e entered ]
	let_go
	ended_with 0 "$waiter"
	wait "${BACKGROUND[@]}" || :
	wait_until 5 is_whole a 1
}

@test "a greater total wakes as many waiters" {
	hold_permit 1 a
	start_guest w1 sem a -v --permits 1
	start_guest w2 sem a -v --permits 1
	wait_until 5 has_waiters a 2
	rlock sem --permits 3 --resize a
	enters_woken w1
	enters_woken w2
	has_held a 3
	let_go
	all_ended_with 0
	is_whole a 3
}

@test "a call that needs more permits than there are says so, and names no holder when there is none" {
	redis set a 3 >/dev/null
	run -75 rlock sem --permits 5 --take 4 -v -n a -- true
	assert_line 'rlock: a: busy: the semaphore has 3 permits in all, and 4 must be free: --resize gives it more'
	redis decr a >/dev/null
	rlock sem --permits 2 --owner x --lease 1m a
	run -75 rlock sem --permits 2 --take 2 -w 100ms a -- true
	assert_one_line '^rlock: a: timed out after 100ms: 2 permits in all, one held by [^ ]+@.*'
}

@test "a call is told that permits are kept for a waiter, and no id of one" {
	redis set a 1 >/dev/null
	redis set 'rlock_turn:{a}' "$(server_ms)000 0123456789abcdef0123456789abcdef" >/dev/null
	run -75 rlock sem --permits 1 -w 100ms a -- true
	assert_output 'rlock: a: timed out after 100ms: kept for the next waiter'
}
