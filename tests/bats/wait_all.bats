#!/usr/bin/env bats
# bats file_tags=long
# What a command leaves running: it is left alone where the command ended by itself, and --wait-all keeps the lock
# until the last of it has ended.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

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

teardown() { watchful_teardown; }

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

@test "a command that is killed by others leaves its background processes alone" {
	END='until [ -e "$BATS_TEST_TMPDIR/let-go" ]; do sleep 0.02; done'
	run_leave
	pkill -KILL -P "$(renewer_of "$PID")" -x leave
	leaves_alone 137
}

@test "a command that a pipe ends by SIGPIPE leaves the service alone that it started" {
	END='exec yes'
	run -0 bash -c 'rlock run a -- ./leave | head -n 1; echo "${PIPESTATUS[0]}"'
	assert_line 141
	mapfile -t LEFT <left
	BACKGROUND+=("${LEFT[@]}")
	no_keys
	left_run
}

@test "a command that a SIGHUP sent to rlock ends leaves its background processes alone" {
	END='touch ready; exec until_let_go'
	run_leave
	wait_until 20 file_exists ready
	kill -s HUP "$PID"
	leaves_alone 129
}

@test "a command that a SIGTERM sent to rlock ends is terminated whole" {
	END='touch ready; exec until_let_go'
	run_leave --grace 300ms
	wait_until 20 file_exists ready
	kill -s TERM "$PID"
	ended_with 143
	nothing_left_runs
	no_keys
}

@test "with rlock killed a command that kills itself leaves its background processes alone" {
	END='until [ -e end ]; do sleep 0.02; done; kill -s KILL $$'
	run_leave
	kill -s KILL "$PID"
	touch end
	wait_until 20 no_keys
	wait_until 20 nothing_runs
	left_run
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

@test "--wait-all waits behind a command that kills itself, and ends by its signal" {
	END='touch over; kill -s KILL $$'
	run_leave --wait-all
	wait_until 20 file_exists over
	wait_until 20 has_no_child "$PID" leave
	stays 0.3 is_held a
	let_go
	ended_with 137
	nothing_left_runs
	no_keys
}

@test "--wait-all releases the lock at once when the command leaves nothing running" {
	run -7 rlock run --wait-all a -- sh -c 'sleep 0.1 & wait; exit 7'
	no_keys
}

@test "--wait-all waits for a process that cleared its environment" {
	in_background rlock run --wait-all a -- sh -c 'env -i PATH="$PATH" BATS_TEST_TMPDIR="$BATS_TEST_TMPDIR" setsid until_let_go & echo $! >left'
	wait_until 20 has_lines left 1
	stays 0.3 is_held a
	let_go
	ended_with 0
	no_keys
}

@test "--wait-all does not wait for a child that rlock had before" {
	run -0 timeout 60 sh -c 'sleep 60 >/dev/null 2>&1 3>&- & echo $! >before; exec rlock run --wait-all a -- sh -c "sleep 0.1 & :"'
	BACKGROUND+=("$(<before)")
	is_running "$(<before)"
	no_keys
}

@test "--wait-all does not wait for the renewer of a lock that the command has for another process" {
	in_background sleep 60
	run -0 timeout 60 rlock run --wait-all a -- rlock lock --pid "$PID" b
	is_free a
	is_held b
	kill "$PID"
	wait_until 20 is_free b
}

@test "--wait-all with rlock killed: the renewer keeps the lock until the last process has ended" {
	END='until [ -e end ]; do sleep 0.02; done; touch over'
	run_leave -t 6s --wait-all
	kill -s KILL "$PID"
	touch end
	wait_until 20 file_exists over
	is_renewed_again a
	kill -s KILL "${LEFT[0]}" "${LEFT[1]}"
	stays 0.3 is_held a
	let_go
	wait_until 20 no_keys
	nothing_left_runs
	wait_until 20 nothing_runs
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

@test "--wait-all with rlock stopped while it waits: the lock is renewed until the last process has ended" {
	END='touch over'
	run_leave -t 6s --wait-all
	wait_until 20 file_exists over
	wait_until 20 has_no_child "$PID" leave
	kill -s STOP "$PID"
	is_renewed_again a
	let_go
	wait_until 20 nothing_left_runs
	kill -s CONT "$PID"
	ended_with 0
	said_nothing
}

@test "SIGTERM while --wait-all waits terminates what is left, and the status is the command's" {
	END='touch over; exit 3'
	for signal in TERM INT; do
		rm -f left over
		run_leave --wait-all --grace 300ms
		wait_until 20 file_exists over
		wait_until 20 has_no_child "$PID" leave
		kill -s "$signal" "$PID"
		ended_with 3
		nothing_left_runs
		no_keys
	done
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

@test "--max-run ends what --wait-all waits for" {
	END='exit 0'
	run_leave --wait-all --max-run 5s --grace 300ms
	ended_with 124
	nothing_left_runs
	no_keys
	said_once '^rlock: a: the command ran for 5s, the limit of --max-run: '
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
	wait_until 20 wakes_rarely "$PID" 12 3
	wait_until 20 wakes_rarely "$renewer" 12 3
	let_go
	ended_with 0
}

# Processes that others start meanwhile are none of its.
@test "while a command that was told to end goes on rlock and its renewer sleep" {
	not_under_valgrind 'it makes calls of its own'
	local rlock renewer
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 3s --on-lost term a -- log_signals
	rlock=$PID
	wait_until 20 file_says signals ready
	renewer=$(renewer_of "$rlock")
	in_background until_let_go
	redis del a
	wait_until 20 file_says signals TERM
	# Not at first, while what belongs to the stop is done; nor while it looks at many processes that others start.
	wait_until 20 wakes_rarely "$rlock" 25 1
	wait_until 20 wakes_rarely "$renewer" 25 1
	let_go
	PID=$rlock
	ended_with 76
}

# wakes_rarely PID TIMES SECONDS: the process wakes so many times at most in the next seconds.
wakes_rarely() {
	local before
	before=$(switches "$1")
	let_pass "$3"
	(($(switches "$1") - before <= $2))
}

# switches PID: how often the process went to sleep.
switches() {
	sed -n 's/^voluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"
}

@test "wait-all can stand in the configuration file" {
	mkdir "$XDG_CONFIG_HOME"
	echo 'wait-all = yes' >"$XDG_CONFIG_HOME/rlock.conf"
	in_background rlock run a -- sh -c 'until_let_go & echo $! >left'
	wait_until 20 has_lines left 1
	stays 0.3 is_held a
	let_go
	ended_with 0
	no_keys
}
