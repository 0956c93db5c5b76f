#!/usr/bin/env bats
# A standard error or a log that takes nothing any more, as the pipe of a pager that was stopped: no renewal waits for it, nor the
# end.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	directory_setup
	# As much is in it as fits.
	mkfifo full
	exec {FULL}<>full
	dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || :
}

teardown() {
	exec {FULL}>&-
	watchful_teardown
}

# hold_blocked [OPTION...]: an rlock holds the lock, and its standard error takes nothing; sets PID, RENEWER and COMMAND.
hold_blocked() {
	in_background sh -c 'exec rlock run -t 1s "$@" a -- sh -c "$0" 2>full' "$STAYING" "$@"
	know_processes
}

@test "with -v and a standard error that takes nothing the lock is renewed, and released at the end" {
	hold_blocked -v
	stays 3 is_held a
	let_go
	took_less 8 ended_with 0
	no_keys
}

@test "a log on standard error that takes nothing delays no renewal" {
	hold_blocked -v --log stderr
	stays 3 is_held a
	let_go
	took_less 8 ended_with 0
	no_keys
}

@test "a log in a pipe that takes nothing delays no renewal" {
	in_background sh -c 'exec rlock run -t 1s --log full a -- sh -c "$0" 2>said' "$STAYING"
	know_processes
	stays 3 is_held a
	let_go
	took_less 8 ended_with 0
	no_keys
}

@test "with rlock killed a standard error that takes nothing delays no renewal, nor the release" {
	hold_blocked -v --log full
	kill -s KILL "$PID"
	stays 3 is_held a
	let_go
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "with the renewer killed a standard error that takes nothing delays no renewal, nor the release" {
	hold_blocked -v --log full
	kill -s KILL "$RENEWER"
	stays 3 is_held a
	let_go
	took_less 8 ended_with 0
	no_keys
}

@test "a lost lock is acted upon though standard error takes nothing" {
	hold_blocked
	redis del a >/dev/null
	took_less 8 ended_with 76
	is_gone "$COMMAND"
}

@test "a waiter with -v and a standard error that takes nothing has its turn" {
	rlock lock --owner other -l 60s a
	in_background sh -c 'exec rlock run -v -t 1s a -- sh -c "$0" 2>full' "$STAYING"
	wait_until 5 has_waiters a
	rlock unlock --owner other a
	know_processes
	stays 2 is_held a
	let_go
	took_less 8 ended_with 0
	no_keys
}
