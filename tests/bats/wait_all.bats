#!/usr/bin/env bats
# bats file_tags=long
# What a command leaves running: it is left alone where the command ended by itself, and --wait-all keeps the lock
# until the last of it has ended. The lock of an rlock inside is released, not left to its lease.

load ../lib/usual
load ../lib/holding

setup() {
	directory_setup
	# A command with three leftover processes: a child, one in a session of its own that lost its parent, and one
	# that is the child of such a one. It ends as END says.
	cat >leave <<-'EOS'
		#!/bin/sh
		until_let_go >/dev/null 2>&1 3>&- & echo $! >>left
		(setsid sh -c 'echo $$ >>left; exec until_let_go >/dev/null 2>&1' 3>&- &)
		(setsid sh -c 'until_let_go & echo $! >>left; wait' >/dev/null 2>&1 3>&- &)
		until [ "$(wc -l <left)" = 3 ]; do sleep 0.02; done
		eval "$END"
	EOS
	chmod +x leave
	export END=:
}

# run_leave [OPTION...]: `rlock run` of the lock a, for ./leave, its messages in the file "said". Sets PID, and LEFT: the
# leftover processes, which run.
run_leave() {
	in_background sh -c 'exec "$@" 2>said' sh rlock run "$@" a -- ./leave
	wait_until 20 has_lines left 3
	mapfile -t LEFT <left
	BACKGROUND+=("${LEFT[@]}")
}

left_run() {
	local pid
	for pid in "${LEFT[@]}"; do
		is_running "$pid" || return
	done
}

nothing_left_runs() {
	local pid
	for pid in "${LEFT[@]}"; do
		is_gone "$pid" || return
	done
}

# is_renewed_again NAME: the lease is renewed while we look.
is_renewed_again() {
	SEEN_MS=0
	wait_until 20 ttl_has_grown "$1"
}

ttl_has_grown() {
	local before_ms=$SEEN_MS
	SEEN_MS=$(redis pttl "$1")
	((before_ms > 0 && SEEN_MS > before_ms))
}

# ---- without it ----

# leaves_alone STATUS: the lock is free at once, and what the command left running runs on.
leaves_alone() {
	ended_with "$1"
	no_keys
	left_run
}

@test "a command that kills itself leaves its background processes alone, and the lock is free at once" {
	END='kill -s KILL $$'
	run_leave
	leaves_alone 137
	said_nothing
}

@test "a command that a SIGHUP sent to rlock ends leaves its background processes alone" {
	END='touch ready; exec until_let_go'
	run_leave
	wait_until 20 file_exists ready
	kill -s HUP "$PID"
	leaves_alone 129
}

# ---- with it ----

@test "--wait-all keeps the lock until the last process of the command has ended, and its status is the command's" {
	END='touch over; exit 3'
	run_leave -t 6s --wait-all
	wait_until 20 file_exists over
	wait_until 20 has_no_child "$PID" leave
	is_renewed_again a
	kill -s KILL "${LEFT[0]}" "${LEFT[1]}"
	wait_until 20 is_gone "${LEFT[1]}"
	stays 0.3 is_held a
	let_go
	ended_with 3
	no_keys
	nothing_left_runs
	said_nothing
}

@test "--wait-all with rlock killed while it waits: the renewer keeps the lock" {
	END='touch over'
	run_leave -t 6s --wait-all
	wait_until 20 file_exists over
	wait_until 20 has_no_child "$PID" leave
	kill -s KILL "$PID"
	is_renewed_again a
	let_go
	wait_until 20 no_keys
	nothing_left_runs
	wait_until 20 nothing_runs
}

@test "SIGTERM while --wait-all waits terminates what is left, and the status is the command's" {
	END='touch over; exit 3'
	run_leave --wait-all --grace 300ms
	wait_until 20 file_exists over
	wait_until 20 has_no_child "$PID" leave
	kill -s TERM "$PID"
	ended_with 3
	nothing_left_runs
	no_keys
}

@test "other signals while --wait-all waits reach what is left" {
	in_background rlock run --wait-all a -- sh -c 'log_signals & echo $! >left'
	wait_until 20 file_says signals ready
	wait_until 20 has_lines left 1
	kill -s USR1 "$PID"
	wait_until 20 file_says signals USR1
	is_held a
	let_go
	ended_with 0
}

watches_command() {
	[ "$(find "/proc/$1/fd" -lname '*pidfd*' 2>/dev/null | wc -l)" -gt 1 ]
}

has_seen_end() {
	! watches_command "$1"
}

# The renewer has a second to see the end of the command, and another one to take a signal.
@test "a signal that rlock gets while it is stopped does not end its renewer, which --wait-all needs" {
	END='until [ -e over ]; do sleep 0.02; done'
	run_leave -v --wait-all
	wait_until 20 watches_command "$PID"
	touch over
	wait_until 20 has_seen_end "$PID"
	kill -s STOP "$PID"
	stays 1.1 is_running "$PID"
	kill -s WINCH "$PID"
	kill -s CONT "$PID"
	wait_until 20 has_taken_signals "$PID"
	let_go
	ended_with 0
	run -0 cat said
	refute_output --partial 'takes over'
}

@test "a lock that is lost while --wait-all waits is told, and what is left is stopped" {
	END='touch over'
	run_leave -t 6s --wait-all
	wait_until 20 file_exists over
	wait_until 20 has_no_child "$PID" leave
	redis del a
	ended_with 76
	nothing_left_runs
	said_once '^rlock: a: lock lost at '
}

@test "while --wait-all waits for an idle daemon rlock and its renewer sleep" {
	not_under_valgrind 'it makes calls of its own'
	END='touch over'
	run_leave --wait-all
	wait_until 20 file_exists over
	wait_until 20 has_no_child "$PID" leave
	renewer=$(renewer_of "$PID")
	# Not at first, while what belongs to the start is done.
	wait_until 20 wake_rarely 12 3 "$PID" "$renewer"
	let_go
	ended_with 0
}

# wake_rarely TIMES SECONDS PID OTHER: each of the two wakes so many times at most in the next seconds.
wake_rarely() {
	local before other_before
	before=$(switches "$3") other_before=$(switches "$4")
	let_pass "$2"
	(($(switches "$3") - before <= $1 && $(switches "$4") - other_before <= $1))
}

# switches PID: how often the process went to sleep.
switches() {
	sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"
}

# ---- the lock inside ----

# hold_nested OPTION...: an rlock with these options has one inside, which holds "b" for a command that ignores SIGTERM: INNER.
hold_nested() {
	in_background sh -c 'exec "$@" 2>said' sh rlock run "$@" a -- rlock run b -- sh -c '
		escape escaped child; trap "" TERM; echo $$ >inner; while :; do sleep 0.02; done'
	wait_until 5 test -s inner
	INNER=$(<inner)
}

@test "a command that is terminated with an rlock inside: the lock inside is released, and not before its command has ended" {
	hold_nested --max-run 2s --grace 500ms
	rival_waits b
	rival_entered
	is_gone "$INNER"
	ended_with 124
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "a renewer inside that is stopped does not hold up the end of a command that is terminated" {
	hold_nested --max-run 2s --grace 500ms
	parent_of "$INNER"
	kill -s STOP "$PARENT"
	took_less 8 ended_with 124
	is_free a
	is_gone "$INNER"
	wait_until 5 nothing_runs
}
