#!/usr/bin/env bats
# bats file_tags=long
# A renewer that hangs in a system call, by a signal or by a debugger: rlock takes over in time. hung_file_system.bats has the hangs that
# SIGKILL does not end.

load ../lib/usual
load ../lib/hold_processes
load ../lib/proxying

# hang_renewer CALLS FIRST [OPTION...]: starts rlock with a lease of 10 s. Its renewer hangs in one of these system calls, from call
# number FIRST on.
hang_renewer() {
	echo >hangs
	record_stderr refuse hangs rlock-renewer "$1" WAIT "$2" rlock run -t 10s "${@:3}" a -- sh -c "$REPORT_PID_AND_RUN"
	find_hold_processes
	wait_until 10 grep -q "[0-9]" hangs
}

# renews_twice: call it when the renewer is gone. Asserts that rlock itself renews the lock "a", whose lease is 10 s, now and once more.
renews_twice() {
	wait_until 10 is_renewed a 10000
	await_renewal a 10000
	hold_is_alive a "$PID" "$COMMAND"
}

@test "a renewer that hangs in a call is killed, and rlock renews the lease for the command and releases it" {
	needs_refuse
	# The renewer makes each of these calls before it sends a renewal.
	hang_renewer sendto,sendmsg,write 4+
	wait_until 10 is_gone "$RENEWER"
	renews_twice
	rm hangs
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

# renewer_runs_once_more: rlock is about to kill its stopped renewer. Let that continue, and do all that it can, before it is killed.
renewer_runs_once_more() {
	wait_until 20 grep -q "[0-9]" hangs
	kill -s CONT "$RENEWER"
	pause_for 1
	rm hangs
	wait_until 10 is_gone "$RENEWER"
}

@test "rlock flock does not leave the lock to a renewer that it is about to kill" {
	needs_refuse
	local file=$PWD/f
	echo >hangs
	record_stderr refuse hangs rlock kill WAIT 1 rlock flock f bash -c 'run_until_ended & until [ -e go ]; do sleep 0.02; done'
	wait_until 10 is_held "$file"
	# If the renewer was stopped before it has started the command, another one would start it.
	wait_until 10 has_command "$PID"
	find_renewer "$PID"
	kill -s STOP "$RENEWER"
	touch go
	renewer_runs_once_more
	stays_true_for 1 is_running "$PID"
	is_held "$file"
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "rlock lock --pid reports no lock that only a renewer has acquired which it is about to kill" {
	needs_refuse
	sleep 100 &
	local process=$!
	BACKGROUND+=("$process")
	rlock lock --owner other -l 60s a
	echo >hangs
	record_stderr refuse hangs rlock kill WAIT 1 rlock lock -t 9s --pid "$process" a
	wait_until 10 has_waiters a
	find_renewer "$PID"
	kill -s STOP "$RENEWER"
	rlock unlock --owner other a
	renewer_runs_once_more
	ended_with 0
	await_renewal a 9000
	rlock unlock --pid "$process" a
	stderr_is_empty
	no_keys
}

@test "rlock renews the lease for the command while a debugger keeps the killed renewer as a zombie" {
	hold_with_pids a -t 10s
	stop_by_debugger "$RENEWER"
	kill -s STOP "$DEBUGGER"
	wait_until 10 is_gone "$RENEWER"
	renews_twice
	kill -KILL "$DEBUGGER"
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "when a debugger keeps the killed renewer from ending, rlock terminates the command before the lease ends, with 76" {
	local holder
	hold_with_pids a -t 9s
	holder=$PID
	start_successor
	wait_until 5 has_waiters a
	stop_by_debugger "$RENEWER" exit
	successor_ran_alone
	ended_with 76 "$holder"
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+s: the renewer hangs in the kernel; '
	is_running "$RENEWER"
	kill -KILL "$DEBUGGER"
	wait_until 10 is_gone "$RENEWER"
}

# is_replaced_in_time: starts rlock with a lease of a second, and stops its renewer while a renewal is not answered. Whether the renewer
# is then replaced, and rlock still has the lock.
is_replaced_in_time() {
	rm -f command-pid
	record_stderr rlock run -t 1s --grace 100ms a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 10 eval 'test -s command-pid || is_gone "$PID"'
	has_renewer "$PID" || return
	RENEWER=${RENEWERS[0]}
	proxy hold-reply "$RENEW"
	wait_until 5 eval 'faults_happened || is_gone "$PID"'
	kill -s STOP "$RENEWER" && wait_until 5 is_gone "$RENEWER" && ! gone 1500 "$PID" >/dev/null
}

# ended_or_lost: asserts that rlock exits with 0, or with the status of a lost lock: 76, or 75 if its command has not run. If rlock found
# its renewer late before the command ran, and SIGKILL did not end that in time on a busy machine, the status is 71.
ended_or_lost() {
	local status=0
	wait_until 30 is_gone "$PID"
	wait "$PID" || status=$?
	[[ $status = 0 || $status = 76 || $status = 7[15] && ! -s command-pid ]] || fail "ended with $status"
}

@test "a renewer that is stopped while its renewal is not answered is replaced before a lease of a second is lost" {
	local tries
	start_realtime_proxy
	# Try again if the lock was lost: rlock has 0.2 seconds for the renewal, which can be too few on a busy machine.
	for ((tries = 10; tries > 0; tries--)); do
		! { is_replaced_in_time && end_commands && ended_with 0 && stderr_is_empty; } || break
		end_commands
		ended_or_lost
		rm end-commands
		proxy pass
	done
	assert [ "$tries" -gt 0 ]
}

@test "a renewer that cannot reach its server is not killed" {
	local tries
	# Try again if the renewer was killed: rlock also kills a renewer that a busy machine has delayed by more than a second.
	for ((tries = 5; tries > 0; tries--)); do
		rm -f command-pid
		hold_with_pids a -t 24s
		# A renewal is due after 8 s, and the renewer would count as hung a second later. The lock is lost after 16 s.
		wait_until 10 is_renewed a 24000
		kill -s STOP "$SERVER_PID"
		gone 9500 "$RENEWER" >/dev/null || break
		kill -s CONT "$SERVER_PID"
		kill -s KILL "$PID" "$COMMAND"
		wait_until 5 is_gone "$PID"
		redis flushall >/dev/null
	done
	assert [ "$tries" -gt 0 ]
	kill -s CONT "$SERVER_PID"
	end_commands
	ended_with 0
	no_keys
}

@test "rlock wakes up at most once per renewal while the renewer renews, and once in ten seconds while the renewer waits" {
	local holder waiter
	hold_with_pids a -t 6s
	holder=$PID
	in_background rlock run a -- true
	waiter=$PID
	wait_until 5 has_waiters a
	pause_for 1.5
	# Poll, since a busy machine prolongs the time of a measurement.
	wait_until 20 wake_rarely "$holder" "$waiter"
	end_commands
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
}

# wake_rarely HOLDER WAITER: whether they wake at most 5 and 2 times in the next 8 s.
wake_rarely() {
	local of_holder of_waiter
	of_holder=$(wake_ups "$1") of_waiter=$(wake_ups "$2")
	pause_for 8
	of_holder=$(($(wake_ups "$1") - of_holder)) of_waiter=$(($(wake_ups "$2") - of_waiter))
	# An rlock that has replaced its renewer renews the lock itself until its end, and wakes more often.
	((of_holder <= 5 && of_waiter <= 2)) || ! has_renewer "$1" || {
		echo "the holder woke $of_holder times, the waiter $of_waiter times" >&2
		return 1
	}
}

wake_ups() {
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$1/status"
}

@test "a renewer that hangs while it waits is replaced, and the other one acquires the lock" {
	rlock lock --owner other -l 60s a
	record_stderr rlock run a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 5 has_waiters a
	find_renewer "$PID"
	stop_by_debugger "$RENEWER"
	wait_until 20 is_gone "$RENEWER"
	rlock unlock --owner other a
	find_hold_processes
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "a renewer that hangs when it has just started the command, after a wait, is replaced before the lease ends" {
	needs_refuse
	rlock lock --owner other -l 60s a
	echo >hangs
	# Let the renewer hang in setsid, which it calls when the command has started.
	record_stderr refuse hangs rlock-renewer setsid WAIT 1 rlock run -t 10s a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 5 has_waiters a
	# Find it now, since it may be gone when the test sees the command.
	find_renewer "$PID"
	# Wait until rlock sleeps: in its first second it still wakes up.
	pause_for 1.5
	rlock unlock --owner other a
	wait_until 10 test -s command-pid
	COMMAND=$(<command-pid)
	wait_until 10 is_gone "$RENEWER"
	renews_twice
	rm hangs
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "when a renewer hangs that has just started the command, no other command gets a lock with a short lease before the first has ended" {
	local tries
	needs_refuse
	# Try again if the lock was lost, and the command terminated, before that has written its pid.
	for ((tries = 10; tries > 0; tries--)); do
		echo >hangs
		record_stderr refuse hangs rlock-renewer setsid WAIT 1 rlock run -t 1s a -- sh -c "$REPORT_PID_AND_RUN"
		wait_until 10 eval 'test -s command-pid || is_gone "$PID"'
		[ ! -s command-pid ] || break
	done
	start_successor
	wait_until 10 is_replaced_or_over
	rm hangs
	end_commands
	successor_ran_alone
	no_keys
}

# is_replaced_or_over: whether the renewer that hangs was killed and its command still has the lock, or another command got it.
is_replaced_or_over() {
	[ -s acquired ] || is_gone "$(awk 'NF > 0 { print $NF }' hangs)"
}

@test "when a renewer hangs that should send SIGKILL before the end of the lease, rlock sends it in time" {
	needs_refuse
	echo >hangs
	# The renewer sends SIGTERM and SIGCONT to the command, which ignores SIGTERM, and hangs before SIGKILL.
	record_stderr refuse hangs rlock-renewer pidfd_send_signal WAIT 3+ rlock run -l 12s a -- sh -c "$IGNORE_TERM"
	start_successor
	successor_ran_alone
	rm hangs
	no_keys
}

@test "when a renewer hangs that has just started the command, after a wait, rlock terminates the command soon after --max-run" {
	needs_refuse
	rlock lock --owner other -l 60s a
	echo >hangs
	record_stderr refuse hangs rlock-renewer setsid WAIT 1 rlock run --max-run 3s a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 5 has_waiters a
	# Wait until rlock sleeps: in its first second it still wakes up.
	pause_for 1.5
	rlock unlock --owner other a
	wait_until 10 test -s command-pid
	BUSY_FACTOR=1 wait_until 8 is_gone "$(<command-pid)"
	rm hangs
	ended_with 124
	no_keys
}

@test "a renewer that waits for a lock is not killed while its server does not answer" {
	local holder tries
	hold_with_pids a -t 60s
	holder=$PID
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	# Try again if the renewer was killed: rlock also kills a renewer that a busy machine has delayed by more than a second.
	for ((tries = 3; tries > 0; tries--)); do
		find_renewer "$PID"
		kill -s STOP "$SERVER_PID"
		gone 13000 "$RENEWER" >/dev/null || :
		kill -s CONT "$SERVER_PID"
		! stays_true_for 1 is_running "$RENEWER" || break
	done
	assert [ "$tries" -gt 0 ]
	end_commands
	ended_with 0 "$holder"
	ended_with 0
}
