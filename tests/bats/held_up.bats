#!/usr/bin/env bats
# rlock and its renewer when something blocks: an exec from a network file system that takes longer than the lease, or a standard
# error or a log that nobody reads. Neither the renewals nor the end of rlock may wait for these. (proc.bats: processes whose
# /proc files hang.)

load ../lib/usual
load ../lib/hold_processes

teardown() {
	rm -f held-up
	teardown_and_check_processes
}

# run_late [OPTION...]: starts an rlock with the command ./late under the lock "a". The exec of ./late blocks while the file
# "held-up" exists. Sets PID. Returns while the exec blocks.
run_late() {
	local why status=0
	not_under_valgrind 'it starts programs for itself'
	why=$(slow_exec none none true 2>&1) || status=$?
	[ "$status" != 73 ] || skip "no call can be watched here: $why"
	assert_equal "$status" 0
	printf '#!/bin/sh\n%s\n' "$REPORT_PID_AND_RUN" >late
	chmod +x late
	: >held-up
	in_background sh -c 'exec slow_exec held-up late rlock run "$@" a -- ./late 2>stderr' sh "$@"
	wait_until 5 test -s held-up
}

@test "an exec that takes longer than the lease loses no lock, also when the renewer was killed" {
	run_late -t 3s
	stays_true_for 3.5 is_held a
	wait_until 5 has_renewer "$PID"
	kill -s KILL "$(renewer_of "$PID")"
	stays_true_for 3.5 is_held a
	[ ! -e command-pid ]
	rm held-up
	wait_until 5 test -s command-pid
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "SIGTERM or a lost lock during a long exec ends rlock, and no command runs" {
	run_late
	kill -s TERM "$PID"
	takes_less_than 15 ended_with 143
	no_keys
	run_late -t 2s --grace 200ms
	redis del a >/dev/null
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at '
	is_gone "$(<held-up)"
	[ ! -e command-pid ]
}

# make_full: creates the pipe "full" and fills it, so that writes block.
make_full() {
	rm -f full command-pid end-commands
	mkfifo full
	exec {FULL}<>full
	dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || :
}

# run_blocked [OPTION...]: starts rlock with the full pipe as standard error; sets PID.
run_blocked() {
	make_full
	in_background sh -c 'exec rlock run -t 3s "$@" a -- sh -c "$0" 2>full' "$REPORT_PID_AND_RUN" "$@"
}

@test "a blocked standard error or log delays neither renewals nor the release, also when the renewer was killed" {
	local log
	for log in full stderr; do
		run_blocked -v --log "$log"
		find_hold_processes
		[ "$log" = full ] || kill -s KILL "$RENEWER"
		stays_true_for 3.5 is_held a
		end_commands
		takes_less_than 15 ended_with 0
		no_keys
	done
}

@test "with a blocked standard error a waiter acquires the lock, and a lost lock terminates the command" {
	rlock lock --owner other -l 60s a
	run_blocked -v
	wait_until 5 has_waiters a
	rlock unlock --owner other a
	find_hold_processes
	redis del a >/dev/null
	takes_less_than 15 ended_with 76
	is_gone "$COMMAND"
}
