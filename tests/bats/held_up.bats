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
	run_late -t 9s
	await_renewal a 9000
	# rlock has taken over already if the renewer got no processor for a second.
	! has_renewer "$PID" || kill -s KILL "${RENEWERS[@]}" 2>/dev/null || :
	await_renewal a 9000
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
	run_late -t 6s --grace 200ms
	redis del a >/dev/null
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at '
	is_gone "$(<held-up)"
	[ ! -e command-pid ]
}

@test "a command whose exec ends only after the command was terminated does not run" {
	run_late --max-run 3s --grace 20s
	wait_until 10 grep -q 'the limit of --max-run' stderr
	wait_until 10 is_gone "$(<held-up)"
	rm held-up
	ended_with 124
	[ ! -e command-pid ]
	no_keys
	run_late -t 6s --on-lost term
	redis del a >/dev/null
	wait_until 10 grep -q 'lock lost' stderr
	wait_until 10 is_gone "$(<held-up)"
	rm held-up
	ended_with 76
	[ ! -e command-pid ]
}

@test "a lock that is lost before the exec starts no command, also with --on-lost ignore" {
	needs_refuse
	local command
	record_stderr refuse stopped rlock-command getpid STOP 1 rlock run -t 6s --on-lost ignore a -- touch ran
	wait_until 10 test -s stopped
	command=$(cut -d ' ' -f 4 stopped)
	BACKGROUND+=("$command")
	wait_until 5 is_stopped "$command"
	redis del a >/dev/null
	wait_until 10 grep -q 'lock lost' stderr
	kill -s CONT "$command"
	ended_with 75
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: it expired or was deleted on the server; the command was not started$'
	[ ! -e ran ]
	no_keys
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
	in_background sh -c 'exec rlock run -t 9s "$@" a -- sh -c "$0" 2>full' "$REPORT_PID_AND_RUN" "$@"
}

@test "a blocked standard error or log delays neither renewals nor the release, also when the renewer was killed" {
	local log
	for log in full stderr; do
		run_blocked -v --log "$log"
		find_hold_processes
		[ "$log" = full ] || kill -s KILL "$RENEWER" 2>/dev/null || :
		await_renewal a 9000
		end_commands
		takes_less_than 15 ended_with 0
		no_keys
	done
}

@test "a standard error that becomes blocked while the command runs does not delay rlock when it takes over with -v" {
	mkfifo full
	exec {FULL}<>full
	in_background sh -c 'exec rlock run -v -t 9s a -- sh -c "$0" 2>full' "$REPORT_PID_AND_RUN"
	find_hold_processes
	dd if=/dev/zero of=full bs=1 oflag=nonblock 2>/dev/null || :
	wait_until 8 is_renewed a 9000
	kill -s KILL "$RENEWER"
	# A write that waits for the reader would take the rest of a lease that is not longer.
	wait_until 5 ttl_is_below a 7000
	stays_true_for 4.5 ttl_is_above a 2500
	wait_until 5 is_renewed a 9000
	end_commands
	takes_less_than 15 ended_with 0
	no_keys
}

@test "a log line that takes longer than rlock waits for it does not delay its end, also when the command leaves a process" {
	needs_refuse
	echo >hangs
	record_stderr refuse hangs rlock-helper write WAIT 1+ rlock run -t 9s --log log a -- sh -c 'run_until_ended & until [ -e go ]; do sleep 0.02; done'
	wait_until 10 grep -q "[0-9]" hangs
	wait_until 5 has_renewer "$PID"
	# Now rlock waits no longer for the line.
	pause_for 1
	rm hangs
	wait_until 5 test -s log
	touch go
	takes_less_than 4 ended_with 0
	no_keys
	end_commands
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
