#!/usr/bin/env bats
# What is held up, as by a network file system that does not answer or a pager that was stopped: an exec that takes longer than
# the lease, a standard error or a log that takes nothing. No renewal waits for these, nor the end. (Processes that hang so
# that whatever reads their environments waits: none is read, see proc.bats.)

# shellcheck disable=SC2034

load ../lib/usual
load ../lib/holding

teardown() {
	rm -f held-up
	watchful_teardown
}

# ---- an exec ----

needs_slow_exec() {
	local why status=0
	not_under_valgrind 'it starts programs for itself'
	why=$(slow_exec none none true 2>&1) || status=$?
	[ "$status" != 73 ] || skip "no call can be watched here: $why"
	assert_equal "$status" 0
}

# run_late [OPTION...]: an rlock that starts ./late under the lock "a", an exec that takes as long as the file "held-up" is there;
# sets PID. Returns while it takes.
run_late() {
	needs_slow_exec
	printf '#!/bin/sh\n%s\n' "$STAYING" >late
	chmod +x late
	: >held-up
	in_background sh -c 'exec slow_exec held-up late rlock run "$@" a -- ./late 2>said' sh "$@"
	wait_until 5 test -s held-up
	STARTING=$(<held-up)
}

@test "an exec that takes longer than the lease loses no lock, with the renewer killed, too" {
	run_late -t 1s
	stays 1.5 is_held a
	wait_until 5 has_renewer "$PID"
	kill -s KILL "$(renewer_of "$PID")"
	stays 1.5 is_held a
	[ ! -e command-pid ]
	rm held-up
	wait_until 5 test -s command-pid
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "SIGTERM ends an rlock whose command is still to be executed" {
	run_late
	kill -s TERM "$PID"
	took_less 15 ended_with 143
	[ ! -e command-pid ]
	no_keys
}

@test "a lock that is lost while the exec takes long ends rlock with 76, and no command runs" {
	run_late -t 2s --grace 200ms
	redis del a >/dev/null
	ended_with 76
	said_once '^rlock: a: lock lost at '
	[ ! -e command-pid ]
	is_gone "$STARTING"
}

# ---- streams ----

# make_full: the pipe "full" has as much in it as fits.
make_full() {
	mkfifo full
	exec {FULL}<>full
	dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || :
}

# hold_blocked [OPTION...]: an rlock holds the lock, and its standard error takes nothing; sets PID, RENEWER and COMMAND.
hold_blocked() {
	make_full
	in_background sh -c 'exec rlock run -t 1s "$@" a -- sh -c "$0" 2>full' "$STAYING" "$@"
	know_processes
}

@test "a standard error and a log that take nothing delay no renewal, nor the release" {
	hold_blocked -v --log full
	stays 2 is_held a
	let_go
	took_less 15 ended_with 0
	no_keys
}

@test "with the renewer killed a standard error and a log that take nothing delay no renewal, nor the release" {
	hold_blocked -v --log stderr
	kill -s KILL "$RENEWER"
	stays 2 is_held a
	let_go
	took_less 15 ended_with 0
	no_keys
}

@test "a lost lock is acted upon though standard error takes nothing" {
	hold_blocked
	redis del a >/dev/null
	took_less 15 ended_with 76
	is_gone "$COMMAND"
}

@test "a waiter with -v and a standard error that takes nothing has its turn" {
	rlock lock --owner other -l 60s a
	make_full
	in_background sh -c 'exec rlock run -v -t 1s a -- sh -c "$0" 2>full' "$STAYING"
	wait_until 5 has_waiters a
	rlock unlock --owner other a
	know_processes
	let_go
	took_less 15 ended_with 0
	no_keys
}
