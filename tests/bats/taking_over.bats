#!/usr/bin/env bats
# bats file_tags=long
# The renewer, which is the command's parent, is killed or stopped: rlock takes over and keeps all promises. And rlock is killed: the
# renewer continues.

load ../lib/usual
load ../lib/hold_processes

@test "the command's parent is the renewer, and ps shows the name of its lock" {
	needs_own_command_line
	hold_with_pids nightly
	has_parent "$COMMAND" "$RENEWER"
	has_parent "$RENEWER" "$PID"
	run -0 ps -o args= -p "$RENEWER"
	assert_output --regexp '^rlock-renewer: nightly *$'
	run -0 ps -o args= -p "$PID"
	assert_output --regexp '^rlock run nightly -- '
}

# hold_logging NAME [OPTION...]: as hold_with_pids, with a command that logs the signals that it gets.
hold_logging() {
	hold_for_script 'echo $$ >command-pid; exec log_signals' "$@"
	wait_until 20 file_has_line signals ready
}

@test "after the renewer was killed rlock renews the lock, passes signals on once, and releases the lock when the command ends" {
	hold_logging a -t 9s
	kill -s USR1 "$PID"
	wait_until 5 file_has_line signals USR1
	kill -s KILL "$RENEWER"
	wait_until 5 has_parent "$COMMAND" "$PID"
	await_renewal a 9000
	hold_is_alive a "$PID" "$COMMAND"
	for signal in USR2 HUP TERM; do
		kill -s "$signal" "$PID"
		wait_until 5 file_has_line signals "$signal"
	done
	end_commands
	ended_with 0
	assert_equal "$(grep -cx USR1 signals)" 1
	stderr_is_empty
	no_keys
}

@test "rlock flock dies by a signal that ended its command, also after its renewer was killed" {
	local flock
	# A shell would show 130 also if rlock exited with that status.
	in_background python3 -IS -c 'import subprocess, sys
flock = subprocess.Popen(sys.argv[1:])
print(flock.pid, file=open("flock", "w"), flush=True)
print(flock.wait())' rlock flock f sh -c "$REPORT_PID_AND_RUN" >ended
	wait_until 10 test -s flock
	flock=$(<flock)
	PID=$flock find_hold_processes
	kill -s KILL "$RENEWER"
	wait_until 5 has_parent "$COMMAND" "$flock"
	kill -s INT "$flock"
	ended_with 0
	assert_equal "$(<ended)" -2
	no_keys
}

@test "a lost lock is not reported again when the renewer is killed after it has reported the loss" {
	hold_logging a -t 9s --on-lost ignore
	redis del a
	wait_until 10 grep -q 'lock lost' stderr
	kill -s KILL "$RENEWER" 2>/dev/null || :
	wait_until 5 has_parent "$COMMAND" "$PID"
	end_commands
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: '
}

# The system calls before which the renewer is killed, one after the other. The child that becomes the command makes some of these
# calls as well, under the name rlock-command. If the child is killed instead, the command has ended before it began.
CALLS=poll,ppoll,read,write,sendto,sendmsg,recvfrom,recvmsg,connect,socket,clone,clone3,fork,vfork,kill,waitid,setsid
CALLS+=,timerfd_settime,timerfd_create,pidfd_open,pidfd_send_signal,prctl,signalfd4,rt_sigprocmask,exit_group

# killed_at NUMBER: kills the renewer before its call number NUMBER of CALLS. The command exits with 7. Fails if the renewer made
# fewer calls.
killed_at() {
	local status=0
	mkdir "killed$1"
	(
		cd "killed$1" || exit
		timeout -s KILL 30 refuse at rlock- "$CALLS" KILL "$1" \
			rlock run -t 10s "lock$1" -- sh -c 'echo $$ >>ran; exit 7' >stderr 2>&1
	) || status=$?
	[ -s "killed$1/at" ] || return
	if [ "$status" = 137 ] && [ ! -e "killed$1/ran" ] && [ ! -s "killed$1/stderr" ]; then
		echo "$1" >>commands_killed
	elif [ "$status" != 7 ] || ! has_line_count "killed$1/ran" 1 || [ -s "killed$1/stderr" ]; then
		echo "$(cat "killed$1/at"): ended with $status: $(cat "killed$1/stderr")" >>wrong
	fi
	is_free "lock$1" || echo "$(cat "killed$1/at"): not released" >>wrong
}

@test "a renewer killed at any of its calls loses neither the command, nor its status, nor the release" {
	needs_refuse
	local number
	: >commands_killed
	for ((number = 1; number < 1000; number++)); do
		killed_at "$number" || break
	done
	[ ! -e wrong ] || fail "$(cat wrong)"
	((number > 10)) || fail "only $number calls were made"
	# The child makes few calls between its fork and its exec, so it may have been killed only in a few rounds.
	(($(wc -l <commands_killed) <= 10)) || fail "$(wc -l <commands_killed) times the command did not run"
	wait_until 5 no_keys
	wait_until 5 no_rlock_runs
}

@test "a renewer killed at any record that it sends to rlock leaves one line for the release in the log" {
	needs_refuse
	local number
	for ((number = 1; number < 100; number++)); do
		rm -f at log
		run timeout -s KILL 30 refuse at rlock-renewer sendmsg KILL "$number" rlock run -v -t 10s --log log a -- true
		[ -s at ] || break
		assert_equal "$status" 0
		assert_equal "$(grep -c ' event=released ' log)" 1
	done
	((number > 3)) || fail "only $number records were sent"
}

@test "when the renewer is killed before the fork of the command, --max-run counts from the start by the next renewer" {
	needs_refuse
	# The next renewer is forked only after 200 ms, so a deadline of the killed one has passed. Try again if a busy machine let the new
	# deadline pass before the command began.
	for _ in {1..40}; do
		run timeout -s KILL 30 refuse at rlock-renewer clone,clone3 KILL 1 rlock run -t 10s --max-run 150ms a -- touch ran
		assert [ -s at ]
		assert [ "$status" != 75 ]
		[ ! -e ran ] || break
		rm at
	done
	assert [ -e ran ]
}

# A process of the command sends SIGTERM to the renewer. The renewer passes it on by its first kill(2), and is then killed. rlock
# takes over, and does not know of that signal.
@test "when the renewer is killed just after it has sent SIGTERM, rlock terminates all of the command's processes" {
	needs_refuse
	KINDS=${ESCAPERS[*]} record_stderr refuse at rlock-renewer kill KILL 2 \
		rlock run --grace 200ms a -- sh -c 'escape escaped $KINDS; kill $PPID; exec run_until_ended'
	ended_with 143
	assert [ -s at ]
	no_escaped_process_runs
	no_keys
}

@test "SIGTERM from a process of the command to the renewer terminates the command and all its processes" {
	run -5 timeout 20 rlock run a -- sh -c 'trap "exit 5" TERM; kill $PPID; while :; do sleep 0.02; done'
	no_keys
	run -143 timeout 20 rlock run --grace 200ms a -- sh -c 'escape escaped session; sh -c "kill $PPID; exec sleep 60"'
	no_escaped_process_runs
	no_keys
}

@test "signals that other processes send to the renewer are ignored" {
	hold_logging a -t 30s
	for signal in TERM INT HUP QUIT USR1 USR2 ALRM PIPE WINCH TSTP TTIN TTOU; do
		kill -s "$signal" "$RENEWER"
	done
	# Stop the renewer, so that it reads the signals only when their senders have ended. Stop rlock first, which would replace it.
	kill -s STOP "$PID" "$RENEWER"
	for signal in TERM INT HUP QUIT USR1 USR2 ALRM; do
		env kill -s "$signal" "$RENEWER"
	done
	kill -s CONT "$RENEWER"
	stays_true_for 1 hold_is_alive a "$RENEWER" "$COMMAND"
	assert_equal "$(cat signals)" ready
	kill -s CONT "$PID"
	end_commands
	ended_with 0
	no_keys
}

# stop_idle_renewer: stops the renewer at a time when it has nothing to do until the next renewal.
stop_idle_renewer() {
	wait_until 5 eval '[ "$(readlink "/proc/$RENEWER/cwd")" = / ]'
	wait_until 5 grep -q '^State:.S' "/proc/$RENEWER/status"
	kill -s STOP "$RENEWER"
}

@test "a stopped renewer delays neither the end of rlock nor SIGTERM" {
	hold_with_pids a -t 90s
	stop_idle_renewer
	end_commands
	takes_less_than 15 ended_with 0
	stderr_is_empty
	no_keys
	rm end-commands command-pid
	hold_with_pids a -t 90s
	stop_idle_renewer
	kill -s TERM "$PID"
	takes_less_than 15 ended_with 143
	is_gone "$COMMAND"
	no_keys
	wait_until 5 no_rlock_runs
}

@test "with --kill-child the command's processes die when rlock or the renewer is killed, and then the lock is free" {
	local victim
	for victim in PID RENEWER; do
		rm -f command-pid entered
		KINDS=${ESCAPERS[*]} hold_for_script 'escape escaped $KINDS; echo $$ >command-pid; exec run_until_ended' a --kill-child
		start_checker a
		kill -s KILL "${!victim}"
		wait_until 5 is_gone "$COMMAND"
		checker_found_none
		[ "$victim" = PID ] || ended_with 137
		wait_until 5 no_rlock_runs
	done
	rm command-pid
	hold_with_pids b --kill-child
	kill_with_renewers "$PID"
	wait_until 5 is_gone "$COMMAND"
	wait_until 5 no_rlock_runs
}

@test "when rlock was killed a process that the command has stopped stays stopped, as without rlock" {
	hold_for_script 'sleep 60 & kill -STOP $!; echo $! >stopped; echo $$ >command-pid; run_until_ended; kill -KILL $!; wait $!; echo $? >status' \
		a -t 9s
	wait_until 5 is_stopped "$(<stopped)"
	kill -s KILL "$PID"
	stays_true_for 1 is_stopped "$(<stopped)"
	is_held a
	end_commands
	wait_until 5 no_keys
	assert_equal "$(<status)" 137
}
