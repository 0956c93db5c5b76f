#!/usr/bin/env bats
# rlock reads neither the environment nor the command line of another process: such a read can hang without an end, and what
# stands there is that process's own choice.

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
	needs_opens
}

teardown() { watchful_teardown; }

needs_opens() {
	local why status=0
	not_under_valgrind 'it opens files for itself'
	why=$(opens opened cat cat "/proc/$$/environ" 2>&1 >/dev/null) || status=$?
	[ "$status" != 73 ] || skip "no call can be watched here: $why"
	assert_equal "$status" 0
	# What it is to find, it finds.
	run -0 grep -c "/proc/$$/environ\$" opened
	assert_output 1
	rm opened
}

# watched STATUS ARG...: rlock does that, with that status, and all that it opens is in the file "opened".
watched() {
	run "-$1" timeout 60 opens opened rlock rlock "${@:2}"
}

# looked_into_none: of what is on record. A sanitizer reads those of its own process.
looked_into_none() {
	[ -s opened ] || fail 'nothing was opened'
	! grep -E '/(environ|cmdline)$' opened | grep -v ' /proc/self/' || fail 'looked into a process'
}

@test "no verb that runs a command opens the environment or the command line of a process" {
	local verb
	in_background sleep 60
	for verb in run lock fair rlock wlock 'sem --permits 2'; do
		# shellcheck disable=SC2086
		watched 0 $verb --wait-all a -- sh -c 'sleep 0.2 & :'
		looked_into_none
	done
	# Within another one.
	watched 0 run c -- rlock run c -- rlock run b -- true
	looked_into_none
}

@test "termination of a command opens the environment or the command line of no process" {
	in_background sleep 60
	watched 124 run --max-run 500ms --grace 200ms a -- sh -c 'escape escaped child session bare hopper; sleep 60'
	looked_into_none
	none_escaped
	watched 124 run -l 1s --grace 100ms a -- sh -c '(setsid sleep 60 &); sleep 60'
	looked_into_none
}

@test "a lost lock opens the environment or the command line of no process" {
	watched 76 run -t 2s a -- sh -c '(setsid sleep 60 &); ask_redis "$SERVER_SOCKET" del a; sleep 60'
	looked_into_none
}

@test "with rlock killed its renewer opens the environment or the command line of no process" {
	in_background sleep 60
	in_background opens opened rlock rlock run --wait-all --max-run 3s --grace 200ms a -- sh -c 'escape escaped bare hopper; echo $$ >command-pid; exec until_let_go'
	know_processes
	kill -s KILL "$PID"
	wait_until 10 no_keys
	wait_until 5 nothing_runs
	none_escaped
	looked_into_none
}

@test "a waiter opens the environment or the command line of no process" {
	held_by_stranger a
	watched 75 run -w 1.5s a -- true
	looked_into_none
	watched 75 fair -w 1.5s a -- true
	looked_into_none
}

@test "lock, renew and unlock without a command open the environment or the command line of no other process" {
	local pid
	in_background sleep 60
	pid=$PID
	watched 0 lock --pid "$pid" a
	watched 0 renew --pid "$pid" a
	watched 0 unlock --pid "$pid" a
	watched 1 unlock --pid "$pid" a
	# Nor do those that look for the hold of an ancestor.
	run -0 timeout 60 opens opened rlock bash -c 'rlock lock --pid $$ a && sh -c "rlock renew a; rlock run a -- true; rlock unlock a"'
	looked_into_none
	no_keys
}

@test "unlock opens the environment or the command line of no process, with the renewer killed, too" {
	in_background sleep 60
	rlock lock --pid "$PID" a
	kill -s KILL "$(renewers)"
	watched 0 unlock --pid "$PID" a
	looked_into_none
	no_keys
}

@test "status, list and check open the environment or the command line of no process" {
	hold_and_know a
	watched 0 status a
	watched 0 list
	watched 0 check
	looked_into_none
	let_go
	ended_with 0
}
