#!/usr/bin/env bats
# While a lock is waited for, the renewer sends the requests and rlock waits for its renewer. If one of the two is killed or
# stopped, the wait must continue at the same position, or end and leave nothing.

load ../lib/usual
load ../lib/hold_processes
load ../lib/proxying
load ../lib/contenders

# wait_behind VERB [OPTION...]: lets another owner hold "a" until release_other, and starts an rlock that waits for it, with
# standard error in the file "stderr". Sets PID and RENEWER.
wait_behind() {
	rlock "${1/#run/lock}" --owner other -l 60s a
	record_stderr rlock "$1" "${@:2}" a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 5 waits_in_queue 1
	find_renewer "$PID"
}

release_other() {
	rlock unlock --owner other a
}

# waits_in_queue COUNT: whether COUNT waiters are queued, for a plain or a fair lock.
waits_in_queue() {
	has_waiters a "$1" || has_queue_length a "$1"
}

none_waits() {
	has_waiters a 0 && has_queue_length a 0
}

has_hold_file() {
	[ "$(count_hold_files)" -gt 0 ]
}

no_command_runs() {
	[ ! -e command-pid ]
}

# ---- the renewer killed ----

@test "a waiter whose renewer was killed starts another one with the same hold id and position, which acquires, renews and releases" {
	local verb before first renewer subscribed
	for verb in run fair; do
		rm -f command-pid end-commands
		wait_behind "$verb" -t 9s
		first=$PID
		in_background rlock "$verb" a -- true
		wait_until 5 waits_in_queue 2
		wait_until 5 has_subscribers 2
		# Stop the second waiter: it would remove the first one, whose next renewer may need more than 2 s to subscribe.
		stop_waiters "$PID"
		before=$(waiting_ids)
		subscribed=$(calls_of subscribe)
		# Find the renewer again, since rlock may have replaced it.
		find_renewer "$first"
		renewer=$RENEWER
		kill -s KILL "$renewer"
		wait_until 5 has_other_renewer "$first" "$renewer"
		wait_until 10 has_subscribed_again "$subscribed"
		continue_waiters "$PID"
		stays_true_for 0.5 eval '[ "$(waiting_ids)" = "$before" ]'
		release_other
		PID=$first find_hold_processes
		await_renewal a 9000
		is_running "$COMMAND"
		end_commands
		ended_with 0 "$first"
		ended_with 0
		stderr_is_empty
		no_keys
	done
}

# waiting_ids: prints the hold ids in the queue of the plain lock "a", or the owners in the queue of the fair one, in order.
waiting_ids() {
	redis zrange 'rlock_queue:{a}' 0 -1
	redis lrange 'redisson_lock_queue:{a}' 0 -1
}

@test "a waiter whose renewer was killed still waits no longer than its wait time" {
	local start
	start=$(now_ms)
	wait_behind run -w 9s
	pause_for 4
	kill -s KILL "$RENEWER"
	takes_less_than 8 ended_with 75
	(($(now_ms) - start >= 8900))
	wait_until 5 none_waits
	stderr_is_one_line '^rlock: a: timed out after 9s'
}

# grant_unheard SCRIPT: starts an rlock with SCRIPT as its command, which waits for a lock of another owner. Then the server
# grants it the lock, but the proxy holds the reply. Sets PID and RENEWER.
grant_unheard() {
	local direct=$RLOCK_URL
	rlock lock --owner other -l 60s a
	start_realtime_proxy
	record_stderr rlock run -t 60s a -- sh -c "$1"
	RLOCK_URL=$direct
	wait_until 5 has_waiters a
	find_renewer "$PID"
	# This text selects requests that acquire the lock.
	proxy hold-reply "$ACQUIRE" 1000
	release_other
	wait_until 10 eval 'redis hkeys a | grep -q ":$PID$"'
}

@test "when the renewer is killed before it gets the reply that grants the lock, the command runs once, with one hold" {
	grant_unheard 'ask_redis "$SERVER_SOCKET" hvals a >>ran; '"$REPORT_PID_AND_RUN"
	kill -s KILL "$RENEWER"
	proxy pass
	find_hold_processes
	end_commands
	ended_with 0
	assert_equal "$(cat ran)" 1
	stderr_is_empty
	no_keys
}

@test "a command whose renewer is killed before the exec is started once, and rlock waits for it" {
	needs_refuse
	local command
	# Stop the process that will execute the command before rlock knows its pid: it calls getpid before it records it.
	record_stderr refuse stopped rlock-command getpid STOP 1 rlock run a -- sh -c 'echo $$ >>ran; exit 7'
	wait_until 10 test -s stopped
	command=$(cut -d ' ' -f 4 stopped)
	BACKGROUND+=("$command")
	wait_until 5 is_stopped "$command"
	parent_of "$command"
	kill -s KILL "$PARENT"
	wait_until 5 has_parent "$command" "$PID"
	kill -s CONT "$command"
	ended_with 7
	assert_equal "$(cat ran)" "$command"
	stderr_is_empty
	no_keys
}

@test "no other renewer is started when the renewer is killed while it releases after a failed start of the command" {
	needs_refuse
	start_proxy
	# Hold the replies to repeated releases as well.
	proxy hold-reply "$RELEASE" 1000
	record_stderr refuse refused rlock-renewer clone,clone3,fork,vfork EAGAIN 1 rlock run a -- touch ran
	wait_until 10 file_contains stderr 'cannot start touch'
	find_renewer "$PID"
	kill -s KILL "$RENEWER"
	ended_with 70
	[ ! -e ran ]
	proxy pass
	wait_until 5 no_keys
}

@test "an rlock that cannot start another renewer releases the lock that was granted to the killed one" {
	local try
	needs_refuse
	for try in 1 2 3; do
		rlock lock --owner other -l 60s a
		record_stderr refuse refused rlock clone,clone3,fork,vfork EAGAIN 2 rlock run -t 60s a -- touch ran
		wait_until 5 waits_in_queue 1
		find_renewer "$PID"
		# Stop rlock: the renewer does not start the command while rlock is stopped.
		kill -s STOP "$PID"
		release_other
		# On a busy machine rlock may have ended this renewer, which had no processor for a second, and started no other one.
		! becomes_true_within 5 is_held a || break
		kill -s CONT "$PID"
		ended_with 71
		stderr_is_one_line '^rlock: a: cannot start the renewer: '
	done
	kill -s KILL "$RENEWER"
	kill -s CONT "$PID"
	ended_with 71
	no_keys
	assert [ ! -e ran ]
	stderr_is_one_line '^rlock: a: cannot start the renewer: '
}

@test "after a renewer was killed that had written the hold file, unlock finds the hold of the next one alone" {
	local front
	rlock lock --owner other -l 60s a
	in_background bash -c 'rlock lock --pid $$ -t 60s a & echo $! >front; wait $!; echo $? >acquired; wait_until_true test -e go; rlock unlock --pid $$ a'
	wait_until 5 test -s front
	wait_until 5 waits_in_queue 1
	front=$(<front)
	find_renewer "$front"
	# While rlock is stopped, it does not commit what its renewer has acquired.
	kill -s STOP "$front"
	release_other
	wait_until 10 has_hold_file
	kill -s KILL "$RENEWER"
	kill -s CONT "$front"
	wait_until 20 test -s acquired
	assert_equal "$(<acquired) $(count_hold_files)" '0 1'
	: >go
	ended_with 0
	assert no_keys
	assert no_hold_files
}

@test "a second attempt to which a server has not replied when a signal comes is undone behind it" {
	start_proxy
	proxy log requests
	hold_by_foreign_client a
	in_background rlock run -t 60s --connect-timeout 20s a -- touch begun
	wait_until 10 has_waiters a
	# The next renewer makes each grant again with another hold id.
	replace_renewer
	run_waiter_in_real_time "$PID"
	stop_waiters "$PID"
	find_other_attempt requests
	proxy hold-request "$OTHER_ATTEMPT" 1
	release_by_foreign_client a
	continue_waiters "$PID"
	wait_until 10 faults_happened
	kill "$PID"
	ended_with 143
	proxy release
	wait_until 5 no_keys
	stays_true_for 1 no_keys
	assert [ ! -e begun ]
}

# ---- rlock killed, or stopped ----

@test "a killed waiter leaves the queue within seconds, and its renewer ends" {
	local verb
	for verb in run fair; do
		wait_behind "$verb"
		kill -s KILL "$PID"
		becomes_true_within 5 none_waits
		wait_until 5 no_rlock_runs
		release_other
		no_keys
	done
}

@test "no command is started when rlock was signalled or killed before its renewer acquires the lock" {
	local signal
	for signal in TERM KILL; do
		grant_unheard "$REPORT_PID_AND_RUN"
		kill -s STOP "$RENEWER"
		proxy release
		kill -s "$signal" "$PID"
		wait_until 5 has_no_pending_signals "$PID"
		# Ignore a failure, since rlock kills a stopped renewer after a second.
		kill -s CONT "$RENEWER" 2>/dev/null || :
		ended_with $((128 + $(kill -l $signal)))
		wait_until 5 no_rlock_runs
		no_command_runs
		wait_until 5 no_keys
		kill "${BACKGROUND[0]}"
		BACKGROUND=()
	done
}

@test "a lock that is lost again while rlock is stopped starts no command, also with --on-lost ignore, and ends with 75 and one line" {
	local option
	for option in kill ignore; do
		wait_behind run -t 9s --on-lost "$option"
		kill -s STOP "$PID"
		wait_until 5 is_stopped "$PID"
		release_other
		wait_until 5 is_held a
		redis del a >/dev/null
		wait_until 10 is_gone "$RENEWER"
		kill -s CONT "$PID"
		ended_with 75
		stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: .*; the command was not started$'
		no_command_runs
		no_keys
	done
}

@test "no command is started while rlock is stopped; --max-run counts from when it continues" {
	wait_behind run -t 9s --max-run 5s
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	release_other
	stays_true_for 5.5 no_command_runs
	wait_until 10 ttl_is_above a 7500
	end_commands
	kill -s CONT "$PID"
	ended_with 0
	test -s command-pid
	no_keys
}

@test "no command is started when rlock is killed while it is stopped, and the lock is released" {
	local processor busy=()
	processor=$(taskset --cpu-list --pid $$ | sed 's/.*: //; s/[-,].*//')
	wait_behind run
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	release_other
	# The renewer, which is not stopped, must acquire the lock.
	wait_until 5 is_held a
	# If possible, keep rlock's processor busy with a real-time process. Then rlock cannot die immediately; meanwhile its
	# renewer checks every tenth of a second whether rlock lives.
	if [ "$(nproc)" -gt 1 ] && chrt --rr 2 true 2>/dev/null; then
		taskset --cpu-list --pid "$processor" "$PID" >&2
		busy=(chrt --rr 2 taskset --cpu-list "$processor")
	fi
	in_background "${busy[@]}" bash -c 'kill -s KILL "$0"
		end_us=$((${EPOCHREALTIME/./} + 300000)); while ((${EPOCHREALTIME/./} < end_us)); do :; done' "$PID"
	wait_until 10 no_keys
	no_command_runs
}

# ---- ends ----

# logged_once REGEXP: whether one line of the log matches.
logged_once() {
	[ "$(grep -cE "$1" log)" = 1 ] || fail "$(cat log)"
}

@test "a stopped renewer does not delay the end of a waiter by a signal" {
	wait_behind run --log log
	kill -s STOP "$RENEWER"
	kill -s TERM "$PID"
	takes_less_than 10 ended_with 143
	logged_once ' event=waited '
	logged_once ' event=cancelled .* reason="signal 15"'
	wait_until 5 no_rlock_runs
	wait_until 5 none_waits
}

@test "a stopped renewer does not delay the end of the wait time" {
	wait_behind run -w 10s --log log
	kill -s STOP "$RENEWER"
	takes_less_than 17 ended_with 75
	logged_once ' event=waited '
	logged_once ' event=timed_out .* waited_ms=1[0-9]{4} reason='
	stderr_is_one_line '^rlock: a: timed out after 10s: '
	wait_until 5 no_rlock_runs
	wait_until 5 none_waits
}

@test "a renewer that hangs does not delay the end of the wait time" {
	wait_behind run -w 10s
	stop_by_debugger "$RENEWER"
	takes_less_than 17 ended_with 75
	stderr_is_one_line '^rlock: a: timed out after 10s: '
	wait_until 5 none_waits
}

# The signal and the end of its renewer reach rlock in the same iteration of its loop.
@test "a signal ends a waiter whose renewer was killed at the same time, and it leaves the queue" {
	wait_behind fair
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	kill -s KILL "$RENEWER"
	kill -s TERM "$PID"
	kill -s CONT "$PID"
	ended_with 143
	wait_until 5 none_waits
}
