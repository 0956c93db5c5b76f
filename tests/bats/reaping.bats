#!/usr/bin/env bats
# rlock in the place of an init of a container: what is orphaned below it is reaped, the command is alone beside it, and each
# exit status and signal arrives.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "each of the 256 exit statuses of a command is rlock's" {
	lane() {
		local code status
		for ((code = $1; code < 256; code += 4)); do
			status=0
			rlock run "lane$1" -- sh -c "exit $code" || status=$?
			[ "$status" = "$code" ] || echo "$status, not $code"
		done >>wrong 2>&1
	}
	local number lanes=()
	for number in 0 1 2 3; do
		lane "$number" &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	[ ! -s wrong ] || fail "$(cat wrong)"
	no_keys
}

# A crowd of orphans that end at once, in all orders of parent and child, then: how many zombies of them stay, and what is
# beside the command below its parent.
CROWD='i=0
while [ $i -lt 40 ]; do
	(sh -c "exit 3" & exit 0)
	(setsid sh -c "(exit 5) & exit 4" &)
	(sh -c "sh -c \"kill -9 \\$\\$\" & exit 0" &)
	i=$((i + 1))
done'

@test "what is orphaned below rlock is reaped while the command runs" {
	hold_for "$CROWD"'
		echo $$ >command-pid; exec until_let_go' a
	wait_until 10 no_zombie_below "$PID"
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

@test "the command is the only child of its parent, once what it has orphaned has been reaped" {
	hold_for "$CROWD"'
		echo $$ >command-pid; exec until_let_go' a
	wait_until 10 is_only_child "$COMMAND"
	let_go
	ended_with 0
}

is_only_child() {
	local -a CHILDREN
	parent_of "$1"
	children_of "$PARENT"
	[ "${CHILDREN[*]}" = "$1" ]
}

@test "as the first process of a container rlock reaps what the command orphans" {
	needs_namespaces
	run -0 unshare --fork --pid --mount-proc --kill-child rlock run a -- sh -c "$CROWD"'
		left() {
			for stat in /proc/[0-9]*/stat; do
				{ read -r line <"$stat"; } 2>/dev/null || continue
				case $line in *") Z "*) return 0 ;; esac
			done
			return 1
		}
		i=0
		while [ $((i += 1)) -lt 500 ] && left; do sleep 0.01; done
		! left'
	assert_output ''
	no_keys
}

@test "with --wait-all a command that orphans a crowd of processes ends with its own status" {
	run -7 timeout 60 rlock run --wait-all a -- sh -c "$CROWD"'
		exit 7'
	no_keys
}

@test "each signal by which a container is stopped ends the command, and rlock by the same one" {
	for signal in HUP INT QUIT USR1 USR2 ALRM TERM; do
		rm -f command-pid
		hold_for 'echo $$ >command-pid; exec sleep 60' a
		kill -s "$signal" "$PID"
		ended_with $((128 + $(kill -l "$signal")))
		is_gone "$COMMAND"
		no_keys
	done
}

@test "SIGALRM sent to rlock reaches the command" {
	hold_for 'trap "touch rung" ALRM; echo $$ >command-pid; until [ -e rung ]; do sleep 0.02; done; exit 6' a
	kill -s ALRM "$PID"
	ended_with 6
	no_keys
}

@test "an alarm that was set before rlock was started reaches the command" {
	in_background python3 -IS -c 'import os, signal, sys; signal.alarm(1); os.execvp("rlock", ["rlock", "run", "a", "--"] + sys.argv[1:])' \
		sh -c 'trap "exit 6" ALRM; echo $$ >command-pid; until [ -e let-go ]; do sleep 0.02; done'
	wait_until 5 test -s command-pid
	BACKGROUND+=("$(<command-pid)")
	ended_with 6
	no_keys
}

@test "with all signals blocked or ignored at the start the command finds them so, and its status is rlock's" {
	run -0 timeout 20 env --block-signal rlock run a -- grep '^SigBlk:.*fffff' /proc/self/status
	run -0 timeout 20 env --ignore-signal rlock run a -- grep '^SigIgn:.*fffff' /proc/self/status
	run -7 timeout 20 env --block-signal rlock run a -- sh -c 'exit 7'
	run -7 timeout 20 env --ignore-signal rlock run a -- sh -c 'exit 7'
	no_keys
}
