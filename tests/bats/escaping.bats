#!/usr/bin/env bats
# bats file_tags=long
# All of a command's processes count as its own, whatever they do to their session, environment, user, or to how they look: with
# rlock or its renewer killed, too. The lock is kept for them (--wait-all) or they are terminated before it is free, and what is
# orphaned is reaped. No other process is taken for one of them.

load ../lib/usual
load ../lib/holding

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

# ---- the lock is kept for them ----

# kept_until_gone: the command has ended, and the lock stays until the processes that escaped have; and nothing is left then.
kept_until_gone() {
	kill -s KILL "$COMMAND"
	wait_until 5 is_gone "$COMMAND"
	rival_waits a
	stays 0.5 is_held a
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

@test "--wait-all with rlock or its renewer killed keeps the lock for what has no parent and nothing in its environment" {
	local victim
	for victim in PID RENEWER; do
		rm -f command-pid entered let-go
		# The second one forks and ends every 20 ms.
		holds_escapers bare hopper -- -t 2s --wait-all
		kill -s KILL "${!victim}"
		kept_until_gone
	done
	ended_with 137
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

# Each of these may slip through where processes are looked for one after the other.
@test "--max-run with rlock killed terminates processes that fork and end every 20 ms" {
	for _ in 1 2; do
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

@test "SIGTERM sent to rlock terminates each process that escaped before the lock is free" {
	holds_escapers "${ESCAPERS[@]}" -- --grace 200ms
	kill -s TERM "$PID"
	terminated_whole
	ended_with 143
}

# ---- no other process is taken for one ----

# before_and_held OPTION...: an rlock that has a child from before it began, as `x & exec rlock run` makes one. Sets BEFORE.
before_and_held() {
	in_background sh -c 'sleep 60 >/dev/null 2>&1 3>&- & echo $! >before; exec rlock run "$@" 2>said' sh "$@" a -- sh -c "$STAYING"
	know_processes
	BEFORE=$(<before)
	BACKGROUND+=("$BEFORE")
}

@test "a child that rlock had before it began is neither terminated nor waited for, with the renewer killed, too" {
	before_and_held --wait-all --max-run 3s --grace 200ms
	ended_with 124
	is_running "$BEFORE"
	no_keys
	rm command-pid
	before_and_held --wait-all --max-run 3s --grace 200ms
	kill -s KILL "$RENEWER"
	ended_with 124
	is_running "$BEFORE"
	rm command-pid
	before_and_held --wait-all
	kill -s KILL "$RENEWER"
	let_go
	ended_with 0
	is_running "$BEFORE"
	no_keys
}

# ---- what is orphaned is reaped ----

# A crowd of orphans that end at once, in all orders of parent and child, then: how many zombies of them stay, and what is
# beside the command below its parent.
CROWD='i=0
while [ $i -lt 20 ]; do
	(sh -c "exit 3" & exit 0)
	(setsid sh -c "(exit 5) & exit 4" &)
	(sh -c "sh -c \"kill -9 \\$\\$\" & exit 0" &)
	i=$((i + 1))
done'

@test "what is orphaned below rlock is reaped while the command runs, which is then the only child of its parent" {
	hold_for "$CROWD"'
		echo $$ >command-pid; exec until_let_go' a
	wait_until 20 no_zombie_below "$PID"
	wait_until 10 is_only_child "$COMMAND"
	let_go
	ended_with 0
	no_keys
}

# zombies_below PID: prints the numbers of zombies among all its descendants.
zombies_below() {
	local child
	local -a CHILDREN
	children_of "$1"
	for child in "${CHILDREN[@]}"; do
		! is_zombie "$child" || echo "$child"
		zombies_below "$child"
	done
}

no_zombie_below() {
	[ -z "$(zombies_below "$1")" ]
}

is_only_child() {
	local -a CHILDREN
	parent_of "$1"
	children_of "$PARENT"
	[ "${CHILDREN[*]}" = "$1" ]
}
