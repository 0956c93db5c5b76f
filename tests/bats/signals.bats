#!/usr/bin/env bats
# Signals: which ones rlock passes on, how it ends by one, and that a command that was stopped is stopped
# whole before the lock is released.

load ../lib/usual

setup() {
	directory_setup
	SIGNALS=$BATS_TEST_TMPDIR/signals
	CHILD=$BATS_TEST_TMPDIR/child
}

teardown() { common_teardown; }

# background_end COMMAND...: like in_background, and how it ends is written to the file "end". Sets
# PID to that of COMMAND.
background_end() {
	in_background sh -c 'exec "$@" >"$BATS_TEST_TMPDIR/end" 2>"$BATS_TEST_TMPDIR/said"' sh ends_how "$@"
	wait_until 5 file_exists "$CHILD"
	PID=$(cat "$CHILD")
	BACKGROUND+=("$PID")
}

# ends_by HOW: the command of background_end ends so, within 5 s.
ends_by() {
	wait_until 5 file_says "$BATS_TEST_TMPDIR/end" "$1" || {
		echo "it ended otherwise, or not at all: $(cat "$BATS_TEST_TMPDIR/end")" >&2
		return 1
	}
}

# ---- passed on ----

@test "SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM and SIGWINCH sent to rlock reach the command, once each" {
	in_background rlock run a -- log_signals
	wait_until 5 file_says "$SIGNALS" ready
	for signal in ALRM WINCH USR2 USR1 HUP INT QUIT; do
		kill -s "$signal" "$PID"
		wait_until 5 file_says "$SIGNALS" "$signal"
	done
	let_go
	ended_with 0
	run -0 cat "$SIGNALS"
	assert_output $'ready\nALRM\nWINCH\nUSR2\nUSR1\nHUP\nINT\nQUIT'
}

@test "a signal that comes while a lock without a command is acquired ends that, and leaves no trace" {
	needs_refuse
	# Before its renewer is forked.
	background_end refuse stopped rlock clone,clone3,fork,vfork STOP 1 rlock lock --pid "$BASHPID" a
	wait_until 5 test -s stopped
	wait_until 5 grep -q '^State:.T' "/proc/$PID/status"
	kill -s TERM "$PID"
	kill -s CONT "$PID"
	ends_by 'signal TERM'
	no_keys
	wait_until 5 nothing_runs
	# When the renewer has acquired the lock, and goes on, or does not.
	local goes_on
	for goes_on in yes no; do
		rm -f stopped "$CHILD" end
		background_end refuse stopped rlock-renewer setsid STOP 1 rlock lock --pid "$BASHPID" a
		wait_until 5 test -s stopped
		is_held a
		kill -s TERM "$PID"
		[ "$goes_on" = no ] || kill -s CONT "$(cut -d ' ' -f 4 stopped)"
		ends_by 'signal TERM'
		no_keys
		wait_until 5 nothing_runs
	done
}

# runs_foreign [OPTION...]: rlock that may not signal other users' processes runs one, until FOREIGN is killed.
runs_foreign() {
	[ "$(id -u)" = 0 ] || skip 'only root can run a command as another user'
	not_under_valgrind 'it runs the command itself'
	in_background sh -c 'exec "$@" 2>said' sh setpriv --bounding-set=-kill rlock run "$@" a -- setpriv --reuid=65534 --clear-groups sleep 60
	wait_until 5 has_renewer "$PID"
	wait_until 5 pgrep -u 65534 -P "${RENEWERS[0]}" -x sleep
	FOREIGN=$(pgrep -u 65534 -P "${RENEWERS[0]}" -x sleep)
	BACKGROUND+=("$FOREIGN")
}

@test "a signal that may not be passed on is told once, and the lock is kept until the command ends" {
	runs_foreign
	kill -s TERM "$PID"
	wait_until 5 said_once '^rlock: a: may not pass signal 15 on to process [0-9]+ \(sleep\): it runs as another user: run rlock as that user$'
	kill -s INT "$PID"
	stays 0.3 is_held a
	kill -s KILL "$FOREIGN"
	ended_with 137
	said_once '^rlock: a: may not pass signal 15 on to process [0-9]+ \(sleep\): it runs as another user: run rlock as that user$'
	no_keys
}

@test "a command that may not be stopped is told, and keeps its lock until it ends" {
	# Not before it is another user's, on a busy machine, too.
	runs_foreign -t 3s --max-run 2s
	wait_until 5 grep -qE '^rlock: a: may not terminate process [0-9]+ \(sleep\): it runs as another user: the lock is kept until the process ends' said
	stays 3.2 is_held a
	kill -s KILL "$FOREIGN"
	ended_with 124
	no_keys
}

@test "a command that may not be stopped when the lock is lost is told, and no lock is said to be kept" {
	runs_foreign -t 3s
	redis del a
	wait_until 10 grep -qE '^rlock: a: may not terminate process [0-9]+ \(sleep\): it runs as another user: it runs on without the lock$' said
	kill -s KILL "$FOREIGN"
	ended_with 76
	run -1 grep 'is kept' said
}

@test "SIGTERM that is passed on is followed by SIGCONT" {
	in_background rlock run a -- log_signals
	wait_until 5 file_says "$SIGNALS" ready
	kill -s TERM "$PID"
	wait_until 5 file_says "$SIGNALS" CONT
	let_go
	ended_with 0
	# Which of two handlers runs first is the kernel's business.
	run -0 sort "$SIGNALS"
	assert_output $'CONT\nTERM\nready'
}

@test "a command that is suspended hears a SIGTERM sent to rlock" {
	background_end rlock run a -- sleep 60
	wait_until 5 has_command "$PID"
	child=$(command_of "$PID")
	BACKGROUND+=("$child")
	kill -s STOP "$child"
	wait_until 5 is_stopped "$child"
	kill -s TERM "$PID"
	ends_by 'signal TERM'
	is_gone "$child"
}

# ---- ends by it ----

@test "a command that a signal ends makes rlock end by the same one, and without a core of its own" {
	run -0 ends_how rlock run a -- sh -c 'kill -s KILL $$'
	assert_output 'signal KILL'
	ulimit -S -c unlimited || skip 'cores are not allowed here'
	run -0 ends_how rlock run a -- sh -c 'kill -s SEGV $$'
	assert_output 'signal SEGV'
}

# ---- stopped whole ----

@test "a process that ignores SIGTERM is killed after the grace, and the lock is held until then" {
	hold_with_family a --grace 6s
	start=$(now_ms)
	kill -s TERM "$PID"
	for member in leader session orphan; do
		wait_until 5 is_gone "$(family_member "$member")"
	done
	is_held a
	watch_family 20
	(($(now_ms) - start >= 5900))
	ended_with 143
	no_keys
}

# ---- left alone ----

@test "a child that rlock had before, and that ends first, is not taken for the command" {
	run -7 sh -c 'sh -c "exit 3" & exec rlock run a -- sh -c "sleep 0.1; exit 7"'
}

# ---- while waiting ----

@test "SIGTERM, SIGINT, SIGHUP, SIGQUIT or SIGALRM ends a waiter at once; the holder does not notice" {
	local holder signal
	hold_in_background a
	holder=$PID
	for signal in TERM INT HUP QUIT ALRM; do
		rm -f "$CHILD" end
		background_end rlock run a -- touch ran
		wait_until 5 has_waiters a 1
		kill -s "$signal" "$PID"
		ends_by "signal $signal"
		has_waiters a 0
		said_nothing
	done
	is_running "$holder"
	[ "$(hold_count a)" = 1 ]
	let_go
	ended_with 0 "$holder"
	no_keys
	[ ! -e ran ]
}

# alarmed COMMAND [ARG...]: the command, after alarm(2) for 0.2 s.
alarmed() {
	python3 -IS -c 'import os, signal, sys
signal.setitimer(signal.ITIMER_REAL, 0.2)
os.execvp(sys.argv[1], sys.argv[1:])' "$@"
}

@test "an alarm that was set before rlock started reaches the command, and ends rlock as it does that" {
	run -142 alarmed rlock run a -- until_let_go
	no_keys
	held_by_stranger a
	run -142 alarmed rlock run a -- touch ran
	has_waiters a 0
	[ ! -e ran ]
}

@test "SIGTERM while the server's answer is under way ends rlock at once, and nothing stays locked" {
	rlock run warm -- true
	in_background faultproxy "unix:$BATS_TEST_TMPDIR/proxy" "unix:$SERVER_SOCKET" "unix:$BATS_TEST_TMPDIR/control"
	wait_until 5 faultproxy -c "unix:$BATS_TEST_TMPDIR/control" state
	faultproxy -c "unix:$BATS_TEST_TMPDIR/control" hold-reply 'redisson_lock_token:{a}' 10
	background_end rlock run -u "unix://$BATS_TEST_TMPDIR/proxy" a -- touch ran
	wait_until 5 is_held a
	kill -s TERM "$PID"
	ends_by 'signal TERM'
	wait_until 5 no_keys
	[ ! -e ran ]
}

@test "neither SIGWINCH nor a signal that was ignored at the start ends a waiter" {
	hold_in_background a
	in_background env --default-signal --ignore-signal=TERM rlock run a -- touch ran
	wait_until 5 has_waiters a 1
	kill -s TERM "$PID"
	kill -s WINCH "$PID"
	has_waiters a 1
	is_running "$PID"
	let_go
	ended_with 0
	[ -e ran ]
}

@test "SIGTERM ends an rlock whose server does not answer, SIGKILL its renewer, too, and nothing stays locked" {
	local signal
	for signal in TERM KILL; do
		rm -f "$CHILD" end
		kill -s STOP "$SERVER_PID"
		background_end rlock run --connect-timeout 60s a -- touch ran
		wait_until 5 has_renewer "$PID"
		wait_until 5 has_no_answer_yet "$(renewer_of "$PID")"
		kill -s "$signal" "$PID"
		ends_by "signal $signal"
		wait_until 10 nothing_runs
		kill -s CONT "$SERVER_PID"
		wait_until 5 server_answers
		wait_until 31 no_keys
		[ ! -e ran ]
	done
}

# It has connected and sleeps in poll.
has_no_answer_yet() {
	[ "$(find "/proc/$1/fd" -lname 'socket:*' | wc -l)" -gt 0 ] && grep -qs '^State:[[:space:]]*S' "/proc/$1/status"
}

# ---- as they were found ----

@test "under nohup a SIGHUP disturbs neither rlock nor the command" {
	in_background nohup rlock run a -- log_signals
	wait_until 5 file_says "$SIGNALS" ready
	kill -s HUP "$(command_of "$PID")"
	kill -s HUP "$PID"
	kill -s USR1 "$PID"
	wait_until 5 file_says "$SIGNALS" USR1
	let_go
	ended_with 0
	run -0 cat "$SIGNALS"
	assert_output $'ready\nUSR1'
}

# ---- at any moment ----

@test "SIGTERM at any moment of a run: it ends by SIGTERM or not at all, and nothing is left" {
	rlock run measured -- true
	start=${EPOCHREALTIME/./}
	rlock run measured -- sleep 0.002
	took=$((${EPOCHREALTIME/./} - start))
	lane() {
		local i delay status
		for ((i = 0; i < 12; i++)); do
			to_seconds delay $((RANDOM * took / 32768 + 100))
			status=0
			timeout --foreground --preserve-status -s TERM "$delay" rlock run "lock$1.$i" -- sleep 0.002 ||
				status=$?
			[ "$status" = 0 ] || [ "$status" = 143 ] || echo "status $status after $delay s"
		done >>wrong 2>&1
	}
	lanes=()
	for number in 1 2 3; do
		lane $number &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	[ ! -s wrong ] || fail "$(cat wrong)"
	wait_until 5 nothing_runs
	# One that ends while it asks for the lock does not wait for what becomes of that.
	wait_until 5 no_keys || fail "locked for $(redis pttl "$(redis keys 'lock*' | head -n 1)") ms yet: $(redis keys '*')"
}
