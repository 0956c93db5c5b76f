#!/usr/bin/env bats
# Processes that hang so that whatever reads their environments waits, as behind a network file system that does not answer: they
# are not looked into, nothing waits for them, and nothing is said of them. What is to be terminated is, and the status is right.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/hanging

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	directory_setup
	needs_hung
}

teardown() { watchful_teardown; }

# run_stubborn OPTION...: a command under the lock "a" that has a family of four, which all ignore SIGTERM. Sets PID and
# FAMILY.
run_stubborn() {
	in_background sh -c 'exec hung hung rlock run --grace 500ms "$@" a -- sh -c "trap \"\" TERM; exec family" 2>said' \
		sh "$@"
	wait_for_family
}

# is_over STATUS PATTERN: the command and all of its processes have gone, rlock has ended with that status and said that alone,
# and no process has looked into what hangs.
is_over() {
	wait_until 10 family_is_gone
	ended_with "$1"
	nothing_runs
	said_once "$2"
	run ! has_been_asked "$STRANGER"
	is_running "$STRANGER"
}

@test "the end of a fixed lease beside a process that hangs ends rlock with 124, in time" {
	local end
	run_stubborn -l 5s
	hung_stranger
	end=$(lease_end_ms a)
	watch_family 10
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	took_less 2 ended_with 124
	is_over 124 '^rlock: a: the lease of 5s ends: '
	wait_until 5 no_keys
}

@test "--max-run beside a process that hangs says nothing of that" {
	run_stubborn --max-run 3s
	hung_stranger
	is_over 124 '^rlock: a: the command ran for 3s, the limit of --max-run: '
	is_free a
}

@test "a lost lock beside a process that hangs says nothing of that" {
	run_stubborn -t 2s
	hung_stranger
	redis del a
	is_over 76 '^rlock: a: lock lost at '
}

@test "a lost lock terminates a command whose own processes hang" {
	run_stubborn -t 2s
	hangs "${FAMILY[@]}"
	redis del a
	wait_until 10 family_is_gone
	ended_with 76
	nothing_runs
	said_once '^rlock: a: lock lost at '
}

@test "with rlock killed its renewer terminates a command whose own processes hang" {
	run_stubborn -t 2s
	hangs "${FAMILY[@]}"
	kill -s KILL "$PID"
	redis del a
	wait_until 10 family_is_gone
	wait_until 10 nothing_runs
}

@test "--wait-all waits for what a command left running that hangs, and for no other" {
	in_background hung hung rlock run --wait-all a -- sh -c 'env -i PATH="$PATH" BATS_TEST_TMPDIR="$BATS_TEST_TMPDIR" until_let_go & echo $! >left'
	wait_until 5 test -s left
	hangs "$(<left)"
	hung_stranger
	PID=${BACKGROUND[-2]}
	stays 0.5 is_held a
	let_go
	ended_with 0
	no_keys
	run ! has_been_asked "$STRANGER"
}
