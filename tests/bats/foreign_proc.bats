#!/usr/bin/env bats
# Where /proc is not that of the PID namespace that rlock is in, or where there is none: the numbers that it shows are those of
# other processes. rlock runs no command there, and says so before it has locked anything.

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
	needs_namespaces
	# What looks for leaks needs a /proc of its own and a child.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
}

teardown() { watchful_teardown; }

# A new PID namespace, and the /proc of the old one.
FOREIGN=(unshare --fork --pid --kill-child)
# The calling process stays where it was, and so does what /proc shows; its children are in a new one.
CHILDREN_ELSEWHERE=(unshare --pid)
# A PID namespace whose /proc is empty.
NONE=(unshare --fork --pid --mount-proc --kill-child sh -c 'mount -t tmpfs none /proc && exec "$@"' sh)

# A PID namespace that a process made, which another one enters later, its /proc unchanged. Sets ENTERED, the words for that.
make_entered() {
	in_background unshare --fork --pid --kill-child sh -c 'touch made; exec until_let_go'
	wait_until 5 file_exists made
	ENTERED=(nsenter --target "$(pgrep -P "$PID")" --pid)
}

# refuses_there COMMAND...: an rlock that is run so ends with 71 and one line, has run no command, and has asked no server.
refuses_there() {
	local before
	before=$(server_commands)
	run -71 timeout -s KILL 20 "$@"
	assert_one_line '^rlock: .*/proc'
	[ ! -e ran ] || fail 'the command ran'
	assert_equal "$(($(server_commands) - before))" 1
}

@test "with the /proc of another PID namespace no verb runs a command, and nothing is locked" {
	local verb
	for verb in run lock fair rlock read wlock write 'sem --permits 2'; do
		# shellcheck disable=SC2086
		refuses_there "${FOREIGN[@]}" rlock $verb a -- touch ran
	done
	no_keys
}

@test "in a PID namespace that was entered without its /proc no command runs, and nothing is locked" {
	local ENTERED
	make_entered
	refuses_there "${ENTERED[@]}" rlock run a -- touch ran
	no_keys
	let_go
}

@test "where only the children of rlock would be in another PID namespace no command runs, and nothing is locked" {
	refuses_there "${CHILDREN_ELSEWHERE[@]}" rlock run a -- touch ran
	no_keys
}

needs_none() {
	[ "${TESTS_UNDER-}" != sanitize ] || skip 'a sanitizer reads its options from /proc, and fails without it'
	"${NONE[@]}" true 2>/dev/null || skip 'no file system can be mounted here'
}

@test "without a /proc no command runs, and nothing is locked" {
	needs_none
	refuses_there "${NONE[@]}" rlock run a -- touch ran
	no_keys
}

@test "with the /proc of another PID namespace no lock is acquired for a process, and the message speaks of no command" {
	refuses_there "${FOREIGN[@]}" rlock lock --pid 1 --on-lost ignore a
	assert_output --partial 'cannot watch processes: /proc is that of another PID namespace'
	refute_output --partial command
	no_keys
}

# Number 1 there is that of a process that /proc does not know, as a rule another one here.
@test "rlock that is the first process of its namespace is not taken for the one that /proc shows" {
	refuses_there "${FOREIGN[@]}" sh -c 'exec rlock run --max-run 1s a -- touch ran'
	no_keys
}

@test "--wait-all and --max-run with the /proc of another PID namespace neither signal a process nor wait for one" {
	in_background until_let_go
	refuses_there "${FOREIGN[@]}" rlock run --wait-all --max-run 1s --grace 100ms a -- touch ran
	is_running "$PID"
	let_go
	ended_with 0
}

@test "with a /proc of its own a command in a PID namespace has its lock, and its status" {
	run -7 unshare --fork --pid --mount-proc rlock run --wait-all a -- sh -c '$REDIS exists a; sleep 0.1 & exit 7'
	assert_output 1
	no_keys
}

@test "the /proc of a PID namespace that was entered with it is its own" {
	in_background unshare --fork --pid --mount-proc --kill-child sh -c 'touch made; exec until_let_go'
	wait_until 5 file_exists made
	run -7 nsenter --target "$(pgrep -P "$PID")" --pid --mount rlock run a -- sh -c 'exit 7'
	no_keys
	let_go
}

@test "with the /proc of another PID namespace locks without a process can be acquired, looked at and released" {
	"${FOREIGN[@]}" rlock lock --owner ci -l 20s a
	run -0 "${FOREIGN[@]}" rlock status a
	assert_output --partial ci
	run -0 "${FOREIGN[@]}" rlock unlock --owner ci a
	no_keys
}

# finds_proc_bad TEXT COMMAND [ARG...]: check, run by the command, finds /proc bad, for that reason.
finds_proc_bad() {
	run -78 timeout -s KILL 20 "${@:2}" rlock check
	assert_line --regexp "^BAD +proc +$1"
}

@test "check finds it bad that /proc is not there" {
	needs_none
	finds_proc_bad 'there is no /proc: mount' "${NONE[@]}"
}

@test "check finds it bad that /proc is that of another PID namespace" {
	local others='/proc is that of another PID namespace: .*--mount-proc' ENTERED
	finds_proc_bad "$others" "${FOREIGN[@]}"
	make_entered
	finds_proc_bad "$others" "${ENTERED[@]}"
	finds_proc_bad 'processes that start here belong to another PID namespace than /proc: unshare --fork --mount-proc' \
		"${CHILDREN_ELSEWHERE[@]}"
	let_go
}

@test "check finds nothing wrong with a /proc that is its own" {
	run -0 rlock check
	assert_line --regexp '^ok +proc +shows'
	run -0 unshare --fork --pid --mount-proc rlock check
	assert_line --regexp '^ok +proc +shows'
}
