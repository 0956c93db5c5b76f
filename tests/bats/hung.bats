#!/usr/bin/env bats
# bats file_tags=long
# Processes that hang so that nothing can look into them, as behind a network file system that does not answer: what is
# to be terminated is terminated all the same.

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

# is_over STATUS: the command and all of its processes have gone, and rlock has ended with that status.
is_over() {
	wait_until 10 family_is_gone
	ended_with "$1"
	nothing_runs
}

has_said() {
	grep -qE -e "$1" said
}

says_what_hangs() {
	[ "$(grep -c 'cannot read the environment of process' said)" = 1 ]
	has_said "^rlock: a: cannot read the environment of process $STRANGER \(sleep\): not terminated, even if the command "
}

@test "--max-run terminates a command beside a process that hangs, and says what it could not look into" {
	run_stubborn --max-run 5s
	hung_stranger
	is_over 124
	has_been_asked "$STRANGER"
	is_running "$STRANGER"
	says_what_hangs
	is_free a
}

@test "a lost lock terminates a command beside a process that hangs" {
	run_stubborn -t 2s
	hung_stranger
	redis del a
	is_over 76
	has_been_asked "$STRANGER"
	says_what_hangs
}

@test "the end of a fixed lease terminates a command beside a process that hangs" {
	run_stubborn -l 6s
	hung_stranger
	wait_until 10 family_is_gone
	wait_until 10 is_gone "$PID"
	has_been_asked "$STRANGER"
	says_what_hangs
	has_said '^rlock: a: the lease of 6s ends: '
}

@test "with rlock killed its renewer terminates a command beside a process that hangs, orphans and all" {
	run_stubborn -t 2s
	hung_stranger
	kill -s KILL "$PID"
	redis del a
	wait_until 10 family_is_gone
	wait_until 10 nothing_runs
	has_been_asked "$STRANGER"
	is_running "$STRANGER"
}

@test "a command whose own processes hang is terminated whole" {
	run_stubborn -t 2s
	hangs "${FAMILY[@]}"
	redis del a
	is_over 76
	said_once '^rlock: a: lock lost at '
}

@test "a process of the command that hung is terminated when it goes on" {
	run_stubborn -t 2s
	hangs "$(family_member orphan)"
	# An orphan that no subreaper has adopted is known by its environment alone.
	kill -s KILL "$PID"
	redis del a
	wait_until 10 has_been_asked "$(family_member orphan)"
	hangs_no_more "$(family_member orphan)"
	wait_until 10 family_is_gone
	wait_until 10 nothing_runs
}

# Nothing but its environment tells whose it is: its parent has gone, and rlock, which had adopted it, too.
@test "an orphan that hangs since it had SIGTERM is killed all the same" {
	local orphan
	in_background hung hung rlock run --max-run 2s --grace 3s a -- sh -c '
		(setsid sh -c "echo \$\$ >orphan; trap \"touch told\" TERM; until test -e let-go; do until_let_go & wait; done" &)
		until_let_go'
	wait_until 5 test -s orphan
	orphan=$(cat orphan)
	wait_until 5 has_renewer "$PID"
	kill -s KILL "$PID"
	wait_until 10 file_exists told
	hangs "$orphan"
	wait_until 10 is_gone "$orphan"
	wait_until 10 nothing_runs
}

@test "a process that was started before the command is not looked into" {
	hung_stranger
	# What was started within the same hundredth of a second can't be told apart.
	let_pass 0.1
	run_stubborn -t 2s
	redis del a
	is_over 76
	said_once '^rlock: a: lock lost at '
	run ! has_been_asked "$STRANGER"
}

@test "--wait-all waits for what a command left running, and then not for a process that hangs" {
	in_background hung hung rlock run --wait-all a -- sh -c 'until_let_go & echo $! >left'
	wait_until 5 file_exists left
	hung_stranger
	stays 0.5 is_held a
	let_go
	ended_with 0
	no_keys
}
