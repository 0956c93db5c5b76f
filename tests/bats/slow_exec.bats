#!/usr/bin/env bats
# An exec that takes longer than the lease, as on a network file system that hangs or where a scanner of files has to agree: the
# lock is renewed meanwhile, and signals and ends are heard of.

# In single quotes stand whole scripts; helpers set what is in capitals.
# shellcheck disable=SC2016,SC2153

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	directory_setup
	needs_slow_exec
	printf '#!/bin/sh\n%s\n' "$STAYING" >late
	chmod +x late
}

teardown() {
	rm -f held-up
	watchful_teardown
}

needs_slow_exec() {
	local why status=0
	not_under_valgrind 'it starts programs for itself'
	why=$(slow_exec none none true 2>&1) || status=$?
	[ "$status" != 73 ] || skip "no call can be watched here: $why"
	assert_equal "$status" 0
}

# run_late [OPTION...]: an rlock that starts ./late under the lock "a", an exec that takes as long as the file "held-up" is there;
# sets PID. Returns while it takes.
run_late() {
	: >held-up
	in_background sh -c 'exec slow_exec held-up late rlock run "$@" a -- ./late 2>said' sh "$@"
	wait_until 5 test -s held-up
	STARTING=$(<held-up)
}

@test "an exec that takes longer than the lease loses no lock" {
	run_late -t 1s
	stays 2.5 is_held a
	[ ! -e command-pid ]
	rm held-up
	know_processes
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "no other gets the lock while the exec takes longer than the lease" {
	run_late -t 1s
	run -75 rlock run -w 2s a -- true
	rm held-up
	know_processes
	let_go
	ended_with 0
	no_keys
}

@test "--max-run counts an exec that takes long, and terminates it" {
	run_late --max-run 2s --grace 200ms
	ended_with 124
	is_gone "$STARTING"
	[ ! -e command-pid ]
	no_keys
}

@test "SIGTERM ends an rlock whose command is still to be executed" {
	run_late
	kill -s TERM "$PID"
	took_less 8 ended_with 143
	[ ! -e command-pid ]
	no_keys
}

@test "with rlock killed while the exec takes long the lock is kept for the command" {
	run_late -t 1s
	kill -s KILL "$PID"
	stays 1.5 is_held a
	rm held-up
	wait_until 5 test -s command-pid
	stays 1.5 is_held a
	let_go
	wait_until 5 no_keys
}

@test "with the renewer killed while the exec takes long the lock is kept for the command, and its status is rlock's" {
	run_late -t 1s
	wait_until 5 has_renewer "$PID"
	kill -s KILL "$(renewer_of "$PID")"
	stays 1.5 is_held a
	rm held-up
	wait_until 5 test -s command-pid
	stays 1.5 is_held a
	let_go
	ended_with 0
	no_keys
}

@test "a lock that is lost while the exec takes long ends rlock with 76, and no command runs" {
	run_late -t 2s --grace 200ms
	redis del a >/dev/null
	ended_with 76
	said_once '^rlock: a: lock lost at '
	[ ! -e command-pid ]
	is_gone "$STARTING"
}
