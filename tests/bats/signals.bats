#!/usr/bin/env bats
# Signals: which ones rlock passes on, how a signal ends rlock, and that a terminated command has ended completely before the lock is
# released.

load ../lib/usual
load ../lib/proxying

# ---- passed on ----

@test "SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM and SIGWINCH sent to rlock reach the command, once each" {
	in_background rlock run a -- log_signals
	wait_until 20 file_has_line signals ready
	for signal in ALRM WINCH USR2 USR1 HUP INT QUIT TERM; do
		kill -s "$signal" "$PID"
		wait_until 5 file_has_line signals "$signal"
	done
	end_commands
	ended_with 0
	assert_equal "$(grep -v CONT signals)" $'ready\nALRM\nWINCH\nUSR2\nUSR1\nHUP\nINT\nQUIT\nTERM'
}

@test "a suspended command receives a SIGTERM that is sent to rlock" {
	in_background rlock run a -- run_until_ended
	wait_until 5 has_command "$PID"
	child=$(command_of "$PID")
	kill -s STOP "$child"
	wait_until 5 is_stopped "$child"
	kill -s TERM "$PID"
	ended_with 143
	is_gone "$child"
}

@test "under nohup SIGHUP is ignored by rlock, waiting or holding, and by the command" {
	hold_by_foreign_client a
	in_background nohup rlock run a -- log_signals
	wait_until 5 has_waiters a 1
	kill -s HUP "$PID"
	has_waiters a 1
	release_by_foreign_client a
	wait_until 20 file_has_line signals ready
	kill -s HUP "$(command_of "$PID")"
	kill -s HUP "$PID"
	kill -s USR1 "$PID"
	wait_until 5 file_has_line signals USR1
	end_commands
	ended_with 0
	assert_equal "$(cat signals)" $'ready\nUSR1'
}

# how_it_ended COMMAND...: runs COMMAND as a child of bash. Prints the line that bash prints if a signal has ended it; nothing if
# it exited.
how_it_ended() {
	LC_ALL=C bash -c '"$@"; :' bash "$@" 2>&1
}

@test "rlock ends by the signal that ended the command, without a core dump of its own" {
	run how_it_ended rlock run a -- sh -c 'kill -s TERM $$'
	assert_output --partial Terminated
	run how_it_ended rlock run a -- sh -c 'exit 143'
	assert_output ''
	ulimit -S -c unlimited || skip 'cores are not allowed here'
	run how_it_ended rlock run a -- sh -c 'kill -s SEGV $$'
	assert_output --partial 'Segmentation fault'
	refute_output --partial core
}

@test "a process that ignores SIGTERM is killed after the grace time, and the lock is held until then" {
	local pids=()
	hold_with_family a --grace 6s
	for member in leader session orphan; do pids+=("$(family_member "$member")"); done
	start=$(now_ms)
	kill -s TERM "$PID"
	for member in "${pids[@]}"; do wait_until 5 is_gone "$member"; done
	is_held a
	watch_family 20
	(($(now_ms) - start >= 5900))
	ended_with 143
	no_keys
}

@test "a child that rlock had before its exec, and that ends first, is not taken for the command" {
	run -7 sh -c 'sh -c "exit 3" & exec rlock run a -- sh -c "sleep 0.1; exit 7"'
}

# ---- processes that may not be signalled ----

needs_foreign_processes() {
	[ "$(id -u)" = 0 ] || skip 'only root can run a command as another user'
	not_under_valgrind 'it runs the command itself'
}

# runs_foreign [OPTION...]: starts an rlock without CAP_KILL, whose command becomes a process of another user. Sets FOREIGN to its
# pid.
runs_foreign() {
	needs_foreign_processes
	record_stderr setpriv --bounding-set=-kill rlock run "$@" a -- setpriv --reuid=65534 --clear-groups sleep 60
	wait_until 5 has_renewer "$PID"
	wait_until 5 find_foreign
	BACKGROUND+=("$FOREIGN")
}

# find_foreign: on a busy machine rlock can have another renewer meanwhile, or none.
find_foreign() {
	find_renewers "$PID"
	FOREIGN=$(pgrep -u 65534 -P "${RENEWERS[0]-$PID}" -x sleep)
}

@test "a process that rlock may not signal is named, and the lock is kept until it ends, unless the lock is lost" {
	local may_not='process [0-9]+ \(sleep\): it runs as another user;'
	runs_foreign
	kill -s TERM "$PID"
	wait_until 5 test -s stderr
	kill -s INT "$PID"
	stays_true_for 0.3 is_held a
	kill -s KILL "$FOREIGN"
	ended_with 137
	stderr_is_one_line "^rlock: a: may not pass signal 15 on to $may_not run rlock as that user\$"
	no_keys
	# --max-run must be long enough for setpriv to change the user, also on a busy machine.
	runs_foreign -t 9s --max-run 8s
	wait_until 12 grep -qE "^rlock: a: may not terminate $may_not the lock is kept until the process ends" stderr
	await_renewal a 9000
	kill -s KILL "$FOREIGN"
	ended_with 124
	no_keys
	runs_foreign -t 6s
	redis del a
	wait_until 10 grep -qE "^rlock: a: may not terminate $may_not it runs on without the lock\$" stderr
	kill -s KILL "$FOREIGN"
	ended_with 76
	run -1 grep 'is kept' stderr
}

@test "a process of another user that the command has started to clean up is not named" {
	needs_foreign_processes
	record_stderr setpriv --bounding-set=-kill rlock run --max-run 3s --grace 1m a -- \
		bash -c 'trap "setpriv --reuid=65534 --clear-groups sleep 1; exit" TERM; run_until_ended & wait'
	ended_with 124
	stderr_is_one_line '^rlock: a: the command ran for 3s'
}

is_foreign() {
	[ "$(ps -o uid=,comm= -p "$FOREIGN")" = '65534 sleep' ]
}

@test "if the lock is lost, rlock names a process of the command that it may not signal, and does not wait for it" {
	needs_foreign_processes
	record_stderr setpriv --bounding-set=-kill rlock run -t 6s a -- \
		bash -c 'setpriv --reuid=65534 --clear-groups sleep 60 & echo $! >foreign; run_until_ended'
	wait_until 20 test -s foreign
	FOREIGN=$(<foreign)
	BACKGROUND+=("$FOREIGN")
	wait_until 20 is_foreign
	redis del a
	ended_with 76
	kill -s KILL "$FOREIGN"
	run -0 grep -cE "^rlock: a: may not terminate process $FOREIGN \(sleep\): it runs as another user; it runs on without the lock\$" stderr
	assert_output 1
}

# ---- while waiting ----

@test "SIGTERM, SIGINT, SIGHUP, SIGQUIT or SIGALRM ends a waiter immediately, SIGWINCH does not; the holder is not affected" {
	local holder signal
	hold_in_background a
	holder=$PID
	for signal in TERM INT HUP QUIT ALRM; do
		record_stderr rlock run a -- touch ran
		wait_until 5 has_waiters a 1
		kill -s WINCH "$PID"
		kill -s "$signal" "$PID"
		takes_less_than 5 ended_with $((128 + $(kill -l "$signal")))
		wait_until 5 has_waiters a 0
		stderr_is_empty
	done
	[ "$(hold_count a)" = 1 ]
	end_commands
	ended_with 0 "$holder"
	no_keys
	[ ! -e ran ]
}

@test "SIGTERM before the server's reply has arrived ends rlock immediately, and nothing stays locked" {
	rlock run warm -- true
	start_proxy
	proxy hold-reply "$ACQUIRE" 10
	in_background rlock run a -- touch ran
	wait_until 5 is_held a
	kill -s TERM "$PID"
	takes_less_than 5 ended_with 143
	wait_until 5 no_keys
	[ ! -e ran ]
}

@test "SIGTERM ends an rlock whose server does not answer, SIGKILL also ends its renewer, and nothing stays locked" {
	local signal
	for signal in TERM KILL; do
		kill -s STOP "$SERVER_PID"
		in_background rlock run --connect-timeout 60s a -- touch ran
		wait_until 5 has_renewer "$PID"
		wait_until 5 eval 'has_no_answer_yet "$(renewer_of "$PID")"'
		kill -s "$signal" "$PID"
		takes_less_than 5 ended_with $((128 + $(kill -l $signal)))
		wait_until 10 no_rlock_runs
		kill -s CONT "$SERVER_PID"
		wait_until 5 server_answers
		wait_until 31 no_keys
		[ ! -e ran ]
	done
}

@test "an attempt that has reached a stalled server is undone by SIGTERM, for locks of each kind, long before the lease ends" {
	local verb
	local -a pids
	for verb in run fair read write 'sem --permits 1'; do
		# shellcheck disable=SC2086
		rlock $verb "warm-${verb%% *}" -- true
	done
	redis flushdb
	kill -s STOP "$SERVER_PID"
	for verb in run fair read write 'sem --permits 1'; do
		# shellcheck disable=SC2086
		in_background rlock $verb --connect-timeout 60s --ttl 60s "a-${verb%% *}" -- touch ran
		pids+=("$PID")
		wait_until 5 has_renewer "$PID"
		wait_until 5 eval 'has_no_answer_yet "$(renewer_of "$PID")"'
	done
	kill -s TERM "${pids[@]}"
	for PID in "${pids[@]}"; do
		takes_less_than 5 ended_with 143
	done
	kill -s CONT "$SERVER_PID"
	wait_until 5 server_answers
	# Only the counter and the total of the semaphore may be left.
	wait_until 10 keys_are a-sem 'rlock_total:{a-sem}'
	refute file_exists ran
}

keys_are() {
	[ "$(redis --raw keys '*' | LC_ALL=C sort | paste -sd ' ')" = "$*" ]
}

# has_no_answer_yet PID: whether the process waits for a reply: it has a socket beside the two ends of that to its rlock, and sleeps.
has_no_answer_yet() {
	[ "$(find "/proc/$1/fd" -lname 'socket:*' | wc -l)" -gt 2 ] && grep -qs '^State:[[:space:]]*S' "/proc/$1/status"
}

# ---- while a lock without a command is acquired ----

# acquires_up_to PROGRAM CALLS: starts an rlock that acquires a lock without a command. PROGRAM is stopped at the first of these
# calls, and then rlock as well. False: rlock has killed it already, as it kills a renewer that is stopped for a second, and another
# one has acquired the lock. Sets PID and STOPPED.
acquires_up_to() {
	rm -f stopped
	in_background refuse stopped "$1" "$2" STOP 1 rlock lock --pid "$BASHPID" a
	wait_until 5 test -s stopped
	STOPPED=$(cut -d ' ' -f 4 stopped)
	wait_until 5 eval 'is_stopped "$STOPPED" || is_gone "$STOPPED"'
	kill -s STOP "$PID" 2>/dev/null || :
	wait_until 5 eval 'is_stopped "$PID" || is_gone "$PID"'
	! is_stopped "$STOPPED" || return 0
	kill -s CONT "$PID" 2>/dev/null || :
	ended_with 0
	rlock unlock --pid "$BASHPID" a
	return 1
}

@test "a signal during the acquisition of a lock without a command ends it and leaves nothing" {
	needs_refuse
	local program calls
	# In the first round rlock is stopped before it forks the renewer; in the second one the renewer is stopped when it has
	# acquired the lock.
	while read -r program calls; do
		wait_until 20 acquires_up_to "$program" "$calls"
		kill -s TERM "$PID"
		kill -s CONT "$PID"
		wait_until 5 has_no_pending_signals "$PID"
		# Ignore a failure, since rlock kills a stopped renewer after a second.
		kill -s CONT "$STOPPED" 2>/dev/null || :
		takes_less_than 5 ended_with 143
		no_keys
		wait_until 5 no_rlock_runs
	done <<-'END'
		rlock clone,clone3,fork,vfork
		rlock-renewer-p setsid
	END
}

# ---- the caller ----

@test "a script that leads its session and has a stopped job continues after rlock" {
	cat >script <<-'END'
		sleep 60 &
		kill -STOP $!
		rlock run a -- true
		echo on
		exec 2>/dev/null
		kill -KILL $!
	END
	run -0 setsid -w bash script
	assert_output on
}

# ---- at any moment ----

@test "SIGTERM at any moment of rlock run ends it by SIGTERM or not at all, and nothing is left" {
	local start took number delay=0
	rlock run measured -- true
	start=${EPOCHREALTIME/./}
	rlock run measured -- sleep 0.002
	took=$((${EPOCHREALTIME/./} - start))
	for number in {1..36}; do
		to_seconds delay $((RANDOM * took / 32768 + 100))
		in_background timeout --foreground --preserve-status -s TERM "$delay" rlock run "lock$number" -- sleep 0.002
		((number % 3)) || wait "${BACKGROUND[@]}" || :
	done
	for PID in "${BACKGROUND[@]}"; do
		ended_with 0 2>/dev/null || ended_with 143
	done
	wait_until 5 no_rlock_runs
	# Poll, since an rlock that ends during a request does not wait until the request is undone.
	wait_until 5 no_keys || fail "locked for $(redis pttl "$(redis keys 'lock*' | head -n 1)") ms yet: $(redis keys '*')"
}
