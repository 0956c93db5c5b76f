#!/usr/bin/env bats
# bats file_tags=long
# rlock, its renewer or both are killed or stopped: the command stays protected or is terminated, and the lock lasts for one lease
# at most after the command.

load ../lib/usual
load ../lib/hold_processes

@test "when rlock was killed the lock is renewed until the command has ended" {
	hold_with_pids a -t 9s
	kill -s KILL "$PID"
	await_renewal a 9000
	is_running "$COMMAND"
	end_commands
	wait_until 5 no_keys
	wait_until 5 is_gone "$COMMAND"
	wait_until 5 no_rlock_runs
}

@test "when rlock and its renewer were killed the lock is free after one lease, and no rlock runs" {
	hold_with_pids a -t 6s
	kill -s KILL "$PID" "$RENEWER"
	wait_until 5 no_rlock_runs
	ttl_is_below a 6001
	wait_until 7 no_keys
	is_running "$COMMAND"
}

@test "while rlock is stopped the lock is renewed, and released when the command ends; rlock then exits with its status" {
	hold_for_script 'echo $$ >command-pid; run_until_ended; sleep 60 & echo $! >left; exit 7' a -t 9s
	kill -s STOP "$PID"
	await_renewal a 9000
	end_commands
	wait_until 5 no_keys
	kill -s CONT "$PID"
	ended_with 7
	stderr_is_empty
	# The leftover process of the command must continue.
	BACKGROUND+=("$(<left)")
	is_running "$(<left)"
}

@test "a lock that is lost while rlock is stopped is reported with 76, although the terminated command exits with 0" {
	hold_for_script 'exec 2>&1; trap "exit 0" TERM; echo $$ >command-pid; run_until_ended' a -t 6s
	kill -s STOP "$PID"
	redis del a
	wait_until 10 is_gone "$COMMAND"
	kill -s CONT "$PID"
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: '
}

@test "a renewer that stays stopped is killed, and rlock keeps the lock for its command" {
	hold_with_pids a -t 12s
	kill -s STOP "$RENEWER"
	wait_until 20 is_gone "$RENEWER"
	stays_true_for 12.5 is_held a
	is_running "$COMMAND"
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

# hold_with_family_and_renewer: as hold_with_family. It begins again if rlock has taken over from its renewer, which can happen on a
# busy machine.
hold_with_family_and_renewer() {
	for _ in 1 2 3; do
		rm -f family
		hold_with_family a -t 9s
		wait_until 10 is_renewed a 9000
		! has_renewer "$PID" || break
		kill -s KILL "$PID" "${FAMILY[@]}"
		wait_until 10 no_keys
	done
	has_renewer "$PID"
}

@test "on a frozen server, with rlock or its renewer stopped or killed, the other one terminates the command before the lease ends" {
	local end signal victim RENEWER
	while read -r signal victim; do
		# SIGKILL comes a tenth of the lease before its end: rlock may get no processor time for that long.
		hold_with_family_and_renewer
		RENEWER=${RENEWERS[0]}
		wait_until 10 is_renewed a 9000
		without_renewal "$PID" with_lease_end kill -s STOP "$SERVER_PID"
		# Send the signal after without_renewal: its SIGCONT to rlock and the renewer would undo an earlier SIGSTOP.
		kill -s "$signal" "${!victim}"
		watch_family 12
		((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease, after $signal to $victim: ${SEEN[*]:0:8}"
		kill -s CONT "$SERVER_PID"
		# Send SIGCONT only to rlock, and only if it was stopped: the leak sanitizer stops a process that ends, and hangs
		# if SIGCONT continues it.
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

@test "when rlock and its renewer were stopped for longer than the lease, they then terminate the command, and the next holder keeps the lock" {
	hold_with_pids a -t 9s --grace 60s
	kill -s STOP "$PID" "$RENEWER"
	in_background rlock run a -- sh -c 'touch second; run_until_ended'
	wait_until 20 file_exists second
	kill -s CONT "${BACKGROUND[0]}" "$RENEWER"
	# rlock and its renewer must not wait for the grace time, which is longer than this.
	takes_less_than 20 ended_with 76 "${BACKGROUND[0]}"
	stderr_is_one_line '^rlock: a: lock lost '
	is_gone "$COMMAND"
	[ "$(hold_count a)" = 1 ]
	end_commands
	ended_with 0
}
