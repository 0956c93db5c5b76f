#!/usr/bin/env bats
# bats file_tags=long
# All of a command's processes count as its own, whatever they do to their session, environment, user, or to how they look: with
# rlock or its renewer killed, too. The lock is kept for them (--wait-all) or they are terminated before it is free. No
# other process is taken for one of them.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# holds_escapers KIND... -- OPTION...: a command under the lock "a" that has started these processes and goes on; sets PID,
# RENEWER, COMMAND.
holds_escapers() {
	local kinds=()
	while [ "$1" != -- ]; do
		kinds+=("$1")
		shift
	done
	shift
	KINDS=${kinds[*]} hold_for 'escape escaped $KINDS && echo $$ >command-pid && exec until_let_go' a "$@"
}

# The same, for an rlock that may not look into what is not dumpable, as other users than root.
holds_unseen() {
	needs_unseen
	in_background sh -c 'exec setpriv "$0" rlock run "$@" 2>said' "$BLIND" \
		"$@" a -- sh -c 'escape escaped undumpable && echo $$ >command-pid && exec until_let_go'
	know_processes
}

BLIND=--bounding-set=-sys_ptrace,-sys_admin,-perfmon

needs_unseen() {
	setpriv "$BLIND" true 2>/dev/null || skip 'only root can do without a right'
}

# ---- the lock is kept for them ----

# kept_until_gone: the command has ended, and the lock stays until the processes that escaped have; and nothing is left then.
kept_until_gone() {
	kill -s KILL "$COMMAND"
	wait_until 5 is_gone "$COMMAND"
	rival_waits a
	stays 1.2 is_held a
	some_escaped
	let_go
	rival_entered
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "--wait-all keeps the lock for each process that escaped" {
	local kind
	for kind in "${ESCAPERS[@]}"; do
		rm -f command-pid entered let-go
		holds_escapers "$kind" -- -t 2s --wait-all
		kept_until_gone
		ended_with 137
	done
}

@test "--wait-all with rlock killed keeps the lock for each process that escaped" {
	local kind
	for kind in "${ESCAPERS[@]}"; do
		rm -f command-pid entered let-go
		holds_escapers "$kind" -- -t 2s --wait-all
		kill -s KILL "$PID"
		kept_until_gone
	done
}

@test "--wait-all with the renewer killed keeps the lock for each process that escaped" {
	local kind
	for kind in "${ESCAPERS[@]}"; do
		rm -f command-pid entered let-go
		holds_escapers "$kind" -- -t 2s --wait-all
		kill -s KILL "$RENEWER"
		kept_until_gone
		ended_with 137
	done
}

@test "--wait-all with rlock killed keeps the lock for an orphan that has nothing in its environment" {
	holds_escapers bare -- -t 2s --wait-all
	# It has lost its parent before.
	kill -s KILL "$PID"
	wait_until 5 is_gone "$PID"
	kept_until_gone
}

@test "--wait-all with rlock killed keeps the lock for a process that may not be looked into" {
	holds_unseen -t 2s --wait-all
	kill -s KILL "$PID"
	wait_until 5 is_gone "$PID"
	kept_until_gone
}

@test "--wait-all with rlock killed keeps the lock for a process that forks and ends every 20 ms" {
	holds_escapers hopper -- -t 2s --wait-all
	kill -s KILL "$PID"
	wait_until 5 is_gone "$PID"
	kept_until_gone
}

# ---- they are terminated ----

# terminated_whole: no process that escaped runs when the lock is free, nor afterwards.
terminated_whole() {
	rival_waits a
	wait_until 20 file_exists entered
	rival_entered
	none_escaped
	wait_until 5 nothing_runs
}

@test "--max-run terminates each process that escaped before the lock is free" {
	holds_escapers "${ESCAPERS[@]}" -- --max-run 2s --grace 200ms
	terminated_whole
	ended_with 124
}

@test "--max-run with rlock killed terminates an orphan that has nothing in its environment" {
	holds_escapers bare -- --max-run 3s --grace 200ms
	kill -s KILL "$PID"
	terminated_whole
}

@test "--max-run with rlock killed terminates a process that may not be looked into" {
	holds_unseen --max-run 3s --grace 200ms
	kill -s KILL "$PID"
	terminated_whole
}

# Each of these may slip through where processes are looked for one after the other.
@test "--max-run with rlock killed terminates processes that fork and end every 20 ms" {
	for _ in 1 2 3 4 5 6; do
		rm -f command-pid entered
		holds_escapers hopper hopper hopper hopper -- --max-run 1s --grace 200ms
		kill -s KILL "$PID"
		terminated_whole
	done
}

@test "--max-run with the renewer killed terminates each process that escaped" {
	holds_escapers "${ESCAPERS[@]}" -- --max-run 3s --grace 200ms
	kill -s KILL "$RENEWER"
	terminated_whole
	ended_with 124
}

@test "with rlock killed a fixed lease terminates each process that escaped in time" {
	holds_escapers "${ESCAPERS[@]}" -- -l 4s --grace 200ms
	kill -s KILL "$PID"
	terminated_whole
}

@test "with the renewer killed a fixed lease terminates each process that escaped in time, and ends rlock with 124" {
	holds_escapers "${ESCAPERS[@]}" -- -l 4s --grace 200ms
	kill -s KILL "$RENEWER"
	terminated_whole
	ended_with 124
}

@test "a lost lock with rlock killed terminates each process that escaped" {
	holds_escapers "${ESCAPERS[@]}" -- -t 2s --grace 200ms
	kill -s KILL "$PID"
	redis del a >/dev/null
	wait_until 5 none_escaped
	wait_until 5 nothing_runs
}

@test "SIGTERM sent to rlock terminates each process that escaped before the lock is free" {
	holds_escapers "${ESCAPERS[@]}" -- --grace 200ms
	kill -s TERM "$PID"
	terminated_whole
	ended_with 143
}

# ---- no other process is taken for one ----

# stranger_with_hold_id: a process that is none of the command's, and has what the command has in its environment. Sets STRANGER.
stranger_with_hold_id() {
	local held pid=$PID
	held=$(tr '\0' '\n' <"/proc/$COMMAND/environ" | sed -n 's/^RLOCK_HELD=//p')
	[ -n "$held" ]
	in_background env RLOCK_HELD="$held" sleep 60
	STRANGER=$PID PID=$pid
	wait_until 5 has_in_environment "$STRANGER" "$held"
}

has_in_environment() {
	tr '\0' '\n' <"/proc/$1/environ" | grep -qxF "RLOCK_HELD=$2"
}

@test "--wait-all does not wait for a process that has its hold in RLOCK_HELD and is not the command's" {
	local STRANGER
	hold_and_know a --wait-all
	stranger_with_hold_id
	let_go
	ended_with 0
	no_keys
	is_running "$STRANGER"
}

@test "--max-run does not terminate a process that has its hold in RLOCK_HELD and is not the command's" {
	local STRANGER
	hold_and_know a --max-run 3s --grace 200ms
	stranger_with_hold_id
	ended_with 124
	no_keys
	is_running "$STRANGER"
}

@test "with rlock killed a process that has its hold in RLOCK_HELD and is not the command's is left alone" {
	local STRANGER
	hold_and_know a --wait-all --max-run 3s --grace 200ms
	stranger_with_hold_id
	kill -s KILL "$PID"
	wait_until 10 no_keys
	wait_until 5 nothing_runs
	is_running "$STRANGER"
}

# before_and_held OPTION...: an rlock that has a child from before it began, as `x & exec rlock run` makes one. Sets BEFORE.
before_and_held() {
	in_background sh -c 'sleep 60 >/dev/null 2>&1 3>&- & echo $! >before; exec rlock run "$@" 2>said' sh "$@" a -- sh -c "$STAYING"
	know_processes
	BEFORE=$(<before)
	BACKGROUND+=("$BEFORE")
}

@test "a child that rlock had before it began is neither waited for nor terminated, with the renewer killed, too" {
	local victim
	for victim in none RENEWER; do
		rm -f command-pid let-go
		before_and_held --wait-all --max-run 3s --grace 200ms
		[ "$victim" = none ] || kill -s KILL "$RENEWER"
		ended_with 124
		is_running "$BEFORE"
		no_keys
		rm -f command-pid
		before_and_held --wait-all
		[ "$victim" = none ] || kill -s KILL "$RENEWER"
		let_go
		ended_with 0
		is_running "$BEFORE"
		no_keys
	done
}

@test "with rlock killed a child that it had before it began lives on" {
	before_and_held --wait-all --max-run 3s --grace 200ms
	kill -s KILL "$PID"
	wait_until 10 no_keys
	is_running "$BEFORE"
}
