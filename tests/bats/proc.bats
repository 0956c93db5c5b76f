#!/usr/bin/env bats
# What rlock reads of /proc, and what it does without. Where /proc is not that of its PID namespace it shows the numbers of other
# processes, so that no command runs; neither the environment nor the command line of another process is read, since
# such a read can hang without an end, and what stands there is that process's own choice.

load ../lib/usual
load ../lib/holding

# ---- that of another PID namespace, or none ----

# A new PID namespace, and the /proc of the old one.
FOREIGN=(unshare --fork --pid --kill-child)
# The calling process stays where it was, and so does what /proc shows; its children are in a new one.
CHILDREN_ELSEWHERE=(unshare --pid)
# A PID namespace whose /proc is empty.
NONE=(unshare --fork --pid --mount-proc --kill-child sh -c 'mount -t tmpfs none /proc && exec "$@"' sh)

# A PID namespace that a process made, which another one enters later, its /proc unchanged. Sets ENTERED, the words for that.
make_entered() {
	needs_namespaces
	in_background unshare --fork --pid --kill-child sh -c 'touch made; exec until_let_go'
	wait_until 5 file_exists made
	ENTERED=(nsenter --target "$(pgrep -P "$PID")" --pid)
}

# refuses_there COMMAND...: an rlock that is run so ends with 71 and one line, has run no command, and has asked no server.
refuses_there() {
	local before
	needs_namespaces
	# What looks for leaks needs a /proc of its own and a child.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	before=$(server_commands)
	run -71 timeout -s KILL 20 "$@"
	assert_one_line '^rlock: .*/proc'
	[ ! -e ran ] || fail 'the command ran'
	assert_equal "$(($(server_commands) - before))" 1
}

@test "with the /proc of another PID namespace no verb runs a command, no process is signalled, and nothing is locked" {
	in_background until_let_go
	refuses_there "${FOREIGN[@]}" rlock run --wait-all --max-run 1s --grace 100ms a -- touch ran
	refuses_there "${FOREIGN[@]}" sh -c 'exec rlock fair a -- touch ran'
	refuses_there "${FOREIGN[@]}" rlock lock --pid 1 --on-lost ignore a
	assert_output --partial 'cannot watch processes: /proc is that of another PID namespace'
	refute_output --partial command
	no_keys
	is_running "$PID"
	let_go
	ended_with 0
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
	needs_namespaces
	[ "${TESTS_UNDER-}" != sanitize ] || skip 'a sanitizer reads its options from /proc, and fails without it'
	"${NONE[@]}" true 2>/dev/null || skip 'no file system can be mounted here'
}

@test "without a /proc no command runs, and nothing is locked" {
	needs_none
	refuses_there "${NONE[@]}" rlock run a -- touch ran
	no_keys
}

@test "with a /proc of its own a command in a PID namespace has its lock, and its status, and check finds it sound" {
	needs_namespaces
	run -7 unshare --fork --pid --mount-proc rlock run --wait-all a -- sh -c '$REDIS exists a; sleep 0.1 & exit 7'
	assert_output 1
	no_keys
	run -0 unshare --fork --pid --mount-proc rlock check
	assert_line --regexp '^ok +proc +shows'
	# Also one that was entered.
	in_background unshare --fork --pid --mount-proc --kill-child sh -c 'touch made; exec until_let_go'
	wait_until 5 file_exists made
	run -7 nsenter --target "$(pgrep -P "$PID")" --pid --mount rlock run a -- sh -c 'exit 7'
	no_keys
	let_go
}

# finds_proc_bad TEXT COMMAND [ARG...]: check, run by the command, finds /proc bad, for that reason.
finds_proc_bad() {
	run -78 timeout -s KILL 20 "${@:2}" rlock check
	assert_line --regexp "^BAD +proc +$1"
}

@test "check finds it bad that /proc is that of another PID namespace, or is not there" {
	local others='/proc is that of another PID namespace: .*--mount-proc' ENTERED
	make_entered
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	finds_proc_bad "$others" "${ENTERED[@]}"
	let_go
	finds_proc_bad 'processes that start here belong to another PID namespace than /proc: unshare --fork --mount-proc' \
		"${CHILDREN_ELSEWHERE[@]}"
	needs_none
	finds_proc_bad 'there is no /proc: mount' "${NONE[@]}"
}

# ---- environments and command lines ----

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

@test "no verb that runs a command, or terminates one, opens the environment or the command line of a process" {
	local verb
	needs_opens
	in_background sleep 60
	for verb in run fair 'sem --permits 2'; do
		# shellcheck disable=SC2086
		watched 0 $verb --wait-all a -- sh -c 'sleep 0.2 & :'
		looked_into_none
	done
	# Within another one.
	watched 0 run c -- rlock run c -- rlock run b -- true
	looked_into_none
	watched 124 run --max-run 500ms --grace 200ms d -- sh -c 'escape escaped child session bare hopper; sleep 60'
	looked_into_none
	none_escaped
	watched 1 status b
	watched 0 list
	watched 0 check
	looked_into_none
}

@test "with rlock killed its renewer opens the environment or the command line of no process" {
	needs_opens
	in_background sleep 60
	in_background opens opened rlock rlock run --wait-all --max-run 3s --grace 200ms a -- sh -c 'escape escaped bare hopper; echo $$ >command-pid; exec until_let_go'
	know_processes
	kill -s KILL "$PID"
	wait_until 10 no_keys
	wait_until 5 nothing_runs
	none_escaped
	looked_into_none
}

@test "lock, renew and unlock without a command open the environment or the command line of no other process" {
	local pid
	needs_opens
	in_background sleep 60
	pid=$PID
	watched 0 lock --pid "$pid" a
	watched 0 renew --pid "$pid" a
	kill -s KILL "$(renewers)"
	watched 0 unlock --pid "$pid" a
	watched 1 unlock --pid "$pid" a
	# Nor do those that look for the hold of an ancestor.
	run -0 timeout 60 opens opened rlock bash -c 'rlock lock --pid $$ a && sh -c "rlock renew a; rlock run a -- true; rlock unlock a"'
	looked_into_none
	no_keys
}

# ---- processes that it does not show ----

# An orphaned shell, where /proc shows no other user's processes.
HIDING=(unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' sh)

needs_hidepid() {
	not_under_valgrind 'it looks at processes itself'
	RLOCK=$(readlink -f "$(command -v rlock)")
	"${HIDING[@]}" test -x "$RLOCK" 2>/dev/null || skip 'no mount namespaces here, or none may run rlock in one'
	! "${HIDING[@]}" test -e /proc/1 || skip 'nothing can be hidden here'
}

@test "a process that /proc hides is told, and is no wrong number" {
	needs_hidepid
	run -71 "${HIDING[@]}" "$RLOCK" lock -u redis://127.0.0.1:1 --pid 1 --on-lost ignore a
	assert_one_line '^rlock: a: cannot watch process 1: /proc does not show it \(hidepid\?\)$'
}
