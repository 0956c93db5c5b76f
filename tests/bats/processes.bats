#!/usr/bin/env bats
# bats file_tags=long
# rlock, its renewer or both of them killed or stopped: the command stays protected or
# is terminated, and the lock does not stay after it for more than a lease.

load ../lib/usual
load ../lib/hold_processes

@test "with rlock killed the lock is held and renewed until the command has ended" {
	hold_with_pids a -t 3s
	kill -s KILL "$PID"
	stays_true_for 4 is_held a
	is_running "$COMMAND"
	end_commands
	wait_until 5 no_keys
	wait_until 5 is_gone "$COMMAND"
	wait_until 5 no_rlock_runs
}

@test "with rlock and its renewer killed the lock is free after a lease, and nothing of rlock's runs" {
	hold_with_pids a -t 3s
	kill -s KILL "$PID" "$RENEWER"
	wait_until 5 no_rlock_runs
	ttl_is_below a 3001
	wait_until 5 no_keys
	is_running "$COMMAND"
}

@test "with rlock stopped the lock is renewed, and free when the command has ended, whose status rlock has when it goes on" {
	hold_for_script 'echo $$ >command-pid; run_until_ended; sleep 60 & echo $! >left; exit 7' a -t 3s
	kill -s STOP "$PID"
	stays_true_for 3.5 is_held a
	end_commands
	wait_until 5 no_keys
	kill -s CONT "$PID"
	ended_with 7
	stderr_is_empty
	# What the command leaves behind runs on.
	BACKGROUND+=("$(<left)")
	is_running "$(<left)"
}

@test "a lock that is lost while rlock is stopped is 76, and rlock says so, though the command ends with 0 at that" {
	hold_for_script 'exec 2>&1; trap "exit 0" TERM; echo $$ >command-pid; run_until_ended' a -t 3s
	kill -s STOP "$PID"
	redis del a
	wait_until 10 is_gone "$COMMAND"
	kill -s CONT "$PID"
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: '
}

@test "a renewer that stays stopped is killed, and rlock keeps the lock for its command" {
	hold_with_pids a -t 3s
	kill -s STOP "$RENEWER"
	wait_until 20 is_gone "$RENEWER"
	stays_true_for 3.5 is_held a
	is_running "$COMMAND"
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "a stopped rlock, or a stopped or killed renewer, and a frozen server: the other one stops the command before the lease ends, and says so" {
	local end signal victim RENEWER
	while read -r signal victim; do
		rm -f family
		# SIGKILL comes a tenth of the lease before its end: for so long rlock may have no processor.
		hold_with_family a -t 6s
		wait_until 5 has_renewer "$PID"
		RENEWER=${RENEWERS[0]}
		wait_until 5 is_renewed a 6000
		without_renewal "$PID" with_lease_end kill -s STOP "$SERVER_PID"
		# Not before: that lets the renewer go on.
		kill -s "$signal" "${!victim}"
		watch_family 8
		((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
		kill -s CONT "$SERVER_PID"
		# A leak sanitizer stops what is about to end, and hangs when SIGCONT undoes that.
		[ "$victim" != PID ] || kill -s CONT "$PID"
		ended_with 76
		stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: '
		wait_until 5 no_keys
	done <<-'END'
		STOP PID
		STOP RENEWER
		KILL RENEWER
	END
}

@test "both stopped for longer than the lease: the command is stopped as soon as they go on, and the next holder keeps the lock" {
	hold_with_pids a -t 3s --grace 60s
	kill -s STOP "$PID" "$RENEWER"
	in_background rlock run -t 3s a -- sh -c 'touch second; run_until_ended'
	wait_until 10 file_exists second
	kill -s CONT "${BACKGROUND[0]}" "$RENEWER"
	# The grace time is longer.
	takes_less_than 20 ended_with 76 "${BACKGROUND[0]}"
	stderr_is_one_line '^rlock: a: lock lost '
	is_gone "$COMMAND"
	[ "$(hold_count a)" = 1 ]
	end_commands
	ended_with 0
}
