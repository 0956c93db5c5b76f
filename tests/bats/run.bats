#!/usr/bin/env bats
# rlock run: the lock is held while the command runs, and rlock exits with the command's status; a command that cannot run is reported.
# Also the lease and its renewal, a fixed lease, --at-least, --max-run and --grace, and the messages of -v.

load ../lib/usual
load ../lib/proxying

@test "rlock ends with the command's status or signal, prints nothing, and leaves nothing locked" {
	local status
	for status in 0 7 255; do
		run "-$status" rlock run a -- sh -c "exit $status"
		assert_output ''
	done
	run -137 rlock run a -- sh -c 'kill -KILL $$'
	assert_output ''
	no_keys
}

@test "a command that cannot run is reported with the reason before the lock is acquired" {
	local before status command message
	before=$(server_commands)
	mkdir bin
	echo '#!/bin/sh' >bin/plain
	echo '#! /no/such/interpreter -x' >bin/script
	# The lines of this script end with CR LF.
	printf '#!/bin/sh\r\n' >bin/carriage-return
	chmod +x bin/script bin/carriage-return
	while IFS='|' read -r status command message; do
		echo "$command" >&2
		PATH=$PWD/bin:$PATH run "-$status" rlock run a -- "$command"
		assert_one_line "^rlock: a: $message"
	done <<-END
		127|no-such-command|no-such-command: command not found: no directory of PATH has it, and a function of the shell cannot be run; give its path\$
		127|$PWD/no/such/file|.*$PWD/no/such/file
		127||'': command not found: is a variable empty?
		126|/|cannot run /: it is a directory; name a program in it\$
		126|plain|cannot run plain: Permission denied: it is not executable; try: chmod \+x $PWD/bin/plain\$
		126|$PWD/bin/plain|cannot run $PWD/bin/plain: Permission denied: it is not executable
		126|script|cannot run script: bad interpreter: '/no/such/interpreter' is not there
		126|bin/carriage-return|cannot run bin/carriage-return: bad interpreter: '/bin/sh
	END
	# Set a PATH without programs: some systems have a program called cd.
	PATH=/no/such run -127 "$RLOCK_BIN" run -w 3s a -- cd /tmp
	assert_output "rlock: a: cd: command not found: it changes only the shell that runs it; try: rlock run -w 3s a -- sh -c 'cd /tmp && COMMAND'"
	PATH=/no/such run -127 "$RLOCK_BIN" run a -- cd 'a b' '&&' ./job '>' /dev/null
	assert_output --partial "; try: rlock run a -- sh -c 'cd '\\''a b'\\'' && ./job > /dev/null'"
	assert_equal $(($(server_commands) - before)) 1
}

# ---- the lease ----

@test "the lease is thirty seconds unless --ttl sets another one" {
	run -0 rlock run a -- ask_redis "$SERVER_SOCKET" pttl a
	assert_ttl 20000 "$output" 30000
	run -0 rlock run -t 5s a -- ask_redis "$SERVER_SOCKET" pttl a
	assert_ttl 1000 "$output" 5000
}

@test "a lock is renewed at every third of its lease while the command runs" {
	hold_in_background a -t 9s
	ask_server pttl a
	# A busy machine may delay some renewals.
	POLL_US=10000 wait_until 30 is_renewed_in_time
	is_running "$PID"
}

# is_renewed_in_time: whether a renewal came since the last call, when a third of the lease of 9 s had just passed. ANSWER must be the
# TTL at the last call.
is_renewed_in_time() {
	local before=$ANSWER
	ask_server pttl a
	((ANSWER > before && before >= 5300 && before <= 6100))
}

@test "a fixed lease is not renewed, and its command is terminated before the lease ends, with 124 and one line" {
	local -a left
	# The command ignores SIGTERM, and records the TTL until it is killed.
	run -124 rlock run -l 8s a -- sh -c 'trap "" TERM
		exec redis-cli -s "$SERVER_SOCKET" -r 1000 -i 0.01 pttl a >left'
	assert_one_line '^rlock: a: .*lease'
	no_keys
	mapfile -t left <left
	((${#left[@]} > 2))
	assert_between 0 "${left[-1]}" 4500
	assert_equal "$(sort -nr left)" "$(cat left)"
}

@test "a lock whose connection gets no more replies is renewed by another connection" {
	start_realtime_proxy
	record_stderr rlock run -t 12s a -- run_until_ended
	wait_until 10 is_renewed a 12000
	has_connected 1
	proxy silence
	wait_until 10 eval '! has_connected 1'
	wait_until 10 is_renewed a 12000
	end_commands
	ended_with 0
	stderr_is_empty
	wait_until 5 no_keys
}

# has_connected COUNT: whether the proxy has had COUNT connections.
has_connected() {
	proxy count | grep -q "^connections=$1 "
}

# wakes_up_between PID MIN_S MAX_S: whether the process's timer, shown in /proc, is set to a time between these from now.
wakes_up_between() {
	local left_s
	left_s=$(sed -n 's/^it_value: (\([0-9]*\),.*/\1/p' "/proc/$1"/fdinfo/* 2>/dev/null | sort -n | tail -n 1)
	[ -n "$left_s" ] && ((left_s >= $2 && left_s <= $3))
}

@test "rlock relies on a lease for 0.1 % less time than the server grants it, as clocks run at different speeds" {
	# 0.1 % of a day is 86 s.
	hold_in_background a --lease 24h
	wait_until 10 wakes_up_between "$(renewer_of "$PID")" 86000 $((86400 - 86))
	# The only clock must be 7, CLOCK_BOOTTIME, which continues while the machine sleeps.
	assert_equal "$(cat "/proc/$(renewer_of "$PID")"/fdinfo/* | grep ^clockid: | sort -u)" 'clockid: 7'
}

# ---- --at-least ----

@test "--at-least keeps the lock after the command, however that ended, and rlock returns immediately" {
	local status options command
	while IFS='|' read -r status options command; do
		echo "$command" >&2
		# shellcheck disable=SC2086
		takes_less_than 10 run "-$status" rlock run --at-least 60s $options a b -- sh -c "$command"
		assert_ttl 50000 "$(redis pttl a)" 60000
		assert_ttl 50000 "$(redis pttl b)" 60000
		run -75 rlock run -n a -- true
		redis flushall
	done <<-'END'
		0||:
		3||exit 3
		137||kill -KILL $$
		124|--max-run 100ms|exec run_until_ended
	END
	# --at-least must count from the acquisition, whatever the lease.
	rlock run -t 60s --at-least 20s a -- sleep 0.6
	assert_ttl 1 "$(redis pttl a)" 19400
}

@test "a lock kept by --at-least expires, and a waiter then acquires it; a command that runs longer keeps nothing" {
	local start
	start=$(now_ms)
	rlock run --at-least 700ms a -- true
	takes_less_than 9 run -0 rlock run -w 20s --at-least 100ms a -- sleep 0.3
	(($(now_ms) - start >= 950))
	no_keys
}

@test "with --unless-failed --at-least keeps the lock after a success, for each kind" {
	local verb
	for verb in run fair read write 'sem --permits 1'; do
		# shellcheck disable=SC2086
		run -0 rlock $verb --at-least 60s --unless-failed "$verb" -- true
		# shellcheck disable=SC2086
		run -75 rlock ${verb/#read/write} -n "$verb" -- true
	done
}

@test "with --unless-failed the lock is free after a command that failed, was killed, terminated, or not found" {
	local status options command
	while IFS='|' read -r status options command; do
		echo "$command" >&2
		# shellcheck disable=SC2086
		run "-$status" rlock run --at-least 60s --unless-failed $options a b -- sh -c "$command"
		no_keys
	done <<-'END'
		3||exit 3
		137||kill -KILL $$
		124|--max-run 100ms|trap 'exit 0' TERM; while :; do sleep 0.01; done
		124|--max-run 100ms --wait-all|run_until_ended & exit 0
	END
	run -126 rlock run --at-least 60s --unless-failed a -- /
	no_keys
}

@test "with --unless-failed the lock is free after a command that was asked to end, also if that exits with 0" {
	in_background rlock run --at-least 60s --unless-failed a -- sh -c 'trap "exit 0" TERM; touch ready; while :; do sleep 0.01; done'
	wait_until 5 test -e ready
	kill -TERM "$PID"
	ended_with 0
	no_keys
}

@test "after its renewer was killed rlock knows whether the command succeeded, for --unless-failed" {
	local status
	for status in 0 3; do
		in_background rlock run --at-least 60s --unless-failed "a$status" -- sh -c 'run_until_ended; exit "$0"' "$status"
		wait_until 5 has_renewer "$PID"
		wait_until 5 has_child "$PID" sh
		! has_renewer "$PID" || kill -KILL "${RENEWERS[@]}"
		wait_until 5 eval '! has_renewer "$PID"'
		end_commands
		ended_with "$status"
		rm end-commands
	done
	ttl_is_above a0 40000
	is_free a3
}

# ---- --max-run and --grace ----

@test "--max-run terminates the command, by SIGKILL after the grace time, with 124 and one line" {
	local start
	start=$(now_ms)
	takes_less_than 20 run -124 rlock run --max-run 6s --grace 400ms a -- sh -c 'trap "" TERM; exec run_until_ended'
	(($(now_ms) - start >= 6400))
	assert_one_line '^rlock: a: the command ran for 6s'
	no_keys
}

@test "a terminated command can run other commands until the grace time is over, and gets no second SIGTERM" {
	run -124 rlock run --max-run 6s --grace 20s a -- sh -c '
		trap "echo TERM >>cleaned; for i in 1 2 3 4 5; do sleep 0.1; echo \$? >>cleaned; done; exit 0" TERM
		run_until_ended & wait'
	assert_equal "$(cat cleaned)" $'TERM\n0\n0\n0\n0\n0'
}

@test "a clean-up that takes longer than the lease keeps the lock, also with a slow network" {
	start_realtime_proxy
	# Use a delay that is longer than the interval between two scans of the processes that must end.
	proxy delay 230
	record_stderr rlock run -t 12s --max-run 6s --grace 30s a -- sh -c '
		trap "sleep 12.2; touch cleaned; exit 0" TERM
		run_until_ended & wait'
	wait_until 10 file_contains stderr 'the command ran for 6s'
	takes_less_than 30 ended_with 124
	[ -e cleaned ]
	wait_until 5 no_keys
}

@test "a stopped command and its processes are continued, so that they get the signal of --signal" {
	run -124 rlock run --max-run 10s --grace 20s --signal HUP a -- bash -c '
		trap "until grep -qs HUP signals; do sleep 0.02; done; touch heard end-commands; exit 0" HUP
		log_signals &
		until grep -qs ready signals; do sleep 0.02; done
		kill -STOP $$
		run_until_ended & wait'
	file_exists heard
	assert_equal "$(grep -v CONT signals)" $'ready\nHUP'
}

# ---- messages ----

ISO_8601='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[-+][0-9]{2}:[0-9]{2}'

@test "with -v rlock says how long it took to acquire the lock, how long it was held, and until when --at-least keeps it" {
	run -0 rlock run -v nightly -- true
	assert_line --regexp '^rlock: nightly: acquired after [0-9.]+s$'
	assert_line --regexp '^rlock: nightly: released after [0-9.]+s$'
	run -0 rlock run -v --at-least 1m nightly -- true
	assert_line --regexp "^rlock: nightly: the command has ended after [0-9.]+s: kept by --at-least until $ISO_8601$"
}

@test "messages about a lock kept by --at-least say that it is kept, and until when" {
	local kept="kept by --at-least, its job has ended: the sync \\([^ ]+:[0-9]+\\), until $ISO_8601" until
	rlock run --at-least 1h --note 'the sync' nightly -- true
	run -75 rlock run -n -v nightly -- true
	assert_line --regexp "^rlock: nightly: busy: $kept\$"
	run_timed_out 75 env CI=true rlock run -w 4s nightly -- true
	assert_line --regexp "^rlock: nightly: waiting: kept by --at-least, its job has ended: the sync, until $ISO_8601\$"
	assert_line --regexp "^rlock: nightly: timed out after 4s: $kept; give a longer --wait\$"
	run -0 rlock status nightly
	assert_line --regexp "^  kept by --at-least until $ISO_8601: its job has ended\$"
	until=$(sed -n 's/.* until \([^ ]*\): .*/\1/p' <<<"$output")
	assert_between $(($(date +%s) + 3400)) "$(date -d "$until" +%s)" $(($(date +%s) + 3600))
	run -1 rlock unlock --force --holder another nightly
	assert_output --regexp "^rlock: nightly: not broken: $kept\$"
	run -0 rlock unlock --force nightly
	assert_output --regexp "^rlock: nightly: lock broken: --at-least kept it until $ISO_8601, its job has ended: the sync \\("
}

@test "the message about a failed release says when the lock expires, with the server's words last" {
	run -0 rlock run --ttl 60s nightly -- bash -c "
		redis-cli -s '$SERVER_SOCKET' replicaof 127.0.0.1 1
		redis-cli -s '$SERVER_SOCKET' client kill type normal
	"
	redis replicaof no one >/dev/null
	assert_line --regexp '^rlock: nightly: release failed: .*; the lock expires with its lease, in about [345][0-9]s: READONLY '
}

@test "sh runs a script without an interpreter line, also when execvpe of the C library does not, as in musl" {
	cat >execvpe.c <<-'END'
		#include <unistd.h>
		int execvpe(const char *path, char *const argv[], char *const environment[]);
		int execvpe(const char *path, char *const argv[], char *const environment[]) { return execve(path, argv, environment); }
	END
	"${CC:-cc}" -shared -fPIC -o execvpe.so execvpe.c
	printf 'echo "$0: $1, $2"; exit 3\n' >script
	chmod +x script
	run -3 env ASAN_OPTIONS="${ASAN_OPTIONS-}:verify_asan_link_order=0" LD_PRELOAD="$PWD/execvpe.so" rlock run a -- ./script 'a b' c
	assert_output './script: a b, c'
}
