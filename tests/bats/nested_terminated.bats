#!/usr/bin/env bats
# rlock inside a command of rlock's that is waited for whole, or terminated: the private server that it started belongs to no
# command, and its own lock is released, not left to its lease.

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
	LOCAL=$RLOCK_RUNTIME_DIR/local.sock
}

teardown() {
	local pid
	let_go
	if [ -s "$RLOCK_RUNTIME_DIR/local.pid" ]; then
		pid=$(<"$RLOCK_RUNTIME_DIR/local.pid")
		[ "$(readlink "/proc/$pid/cwd")" != "$RLOCK_RUNTIME_DIR" ] || kill -KILL "$pid"
	fi
	watchful_teardown
}

local_answers() {
	[ "$(ask_redis "$LOCAL" ping)" = PONG ]
}

# ---- local: ----

@test "--wait-all does not wait for the private server that an rlock inside started" {
	run -0 timeout 20 rlock run --wait-all a -- rlock run -u local: b -- true
	no_keys
	local_answers
}

@test "--wait-all with a renewer killed does not wait for the private server that an rlock inside started" {
	hold_for 'rlock run -u local: b -- true; echo $$ >command-pid; exec until_let_go' a --wait-all
	kill -s KILL "$RENEWER"
	let_go
	ended_with 0
	no_keys
	local_answers
}

@test "--wait-all with rlock killed does not wait for the private server that an rlock inside started" {
	hold_for 'rlock run -u local: b -- true; echo $$ >command-pid; exec until_let_go' a --wait-all
	kill -s KILL "$PID"
	let_go
	wait_until 10 no_keys
	wait_until 5 nothing_runs
	local_answers
}

@test "--max-run leaves the private server alone that an rlock inside started" {
	run -124 timeout 20 rlock run --max-run 2s --grace 200ms a -- sh -c 'rlock run -u local: b -- true; sleep 60'
	no_keys
	local_answers
}

@test "--max-run with rlock or its renewer killed leaves the private server alone that an rlock inside started" {
	hold_for 'rlock run -u local: b -- true; echo $$ >command-pid; exec sleep 60' a --max-run 3s --grace 200ms
	kill -s KILL "$RENEWER"
	ended_with 124
	local_answers
	rm command-pid
	hold_for 'rlock run -u local: b -- true; echo $$ >command-pid; exec sleep 60' a --max-run 3s --grace 200ms
	kill -s KILL "$PID"
	wait_until 10 no_keys
	wait_until 5 nothing_runs
	local_answers
}

@test "--wait-all and --max-run on the private server leave that alone which they started" {
	local server
	run -0 timeout 20 rlock run -u local: --wait-all a -- sh -c 'sleep 0.1 & :'
	local_answers
	server=$(<"$RLOCK_RUNTIME_DIR/local.pid")
	kill -KILL "$server"
	wait_until 5 is_gone "$server"
	run -124 timeout 20 rlock run -u local: --max-run 2s --grace 200ms a -- sleep 60
	local_answers
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

@test "with rlock killed a command that is terminated with an rlock inside: the lock inside is released" {
	hold_nested --max-run 3s --grace 500ms
	kill -s KILL "$PID"
	wait_until 15 no_keys
	is_gone "$INNER"
	wait_until 5 nothing_runs
}

@test "with the renewer killed a command that is terminated with an rlock inside: the lock inside is released" {
	hold_nested --max-run 3s --grace 500ms
	kill -s KILL "$(renewer_of "$PID")"
	ended_with 124
	wait_until 5 no_keys
	is_gone "$INNER"
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

@test "--wait-all waits for an rlock inside until its command has ended" {
	in_background rlock run --wait-all a -- sh -c 'rlock run b -- until_let_go >/dev/null 2>&1 & :'
	wait_until 5 is_held b
	stays 1 is_held a
	let_go
	ended_with 0
	no_keys
}
