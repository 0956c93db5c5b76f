#!/usr/bin/env bats
# What rlock reads in /proc, and what it does without. If /proc belongs to another PID namespace it shows wrong pids, so rlock runs no
# command. rlock reads neither the environment nor the command line of other processes: such a read can hang forever, and those
# processes can change both.

load ../lib/usual
load ../lib/hold_processes

# refuses_there WHAT COMMAND [ARG...]: runs rlock by COMMAND, which gives it other surroundings. rlock must exit with 71 and one
# line, and send no request. `check` there must report /proc as bad because of WHAT.
refuses_there() {
	local before verb
	echo "$*" >&2
	# Switch off the leak sanitizer, which needs /proc itself.
	export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
	before=$(server_commands)
	for verb in 'run --wait-all --max-run 1s' fair; do
		# shellcheck disable=SC2086
		run -71 timeout -s KILL 20 "${@:2}" rlock $verb a -- touch ran
		assert_one_line '^rlock: .*/proc'
	done
	run -71 timeout -s KILL 20 "${@:2}" rlock lock --pid 1 --on-lost ignore a
	assert_one_line '^rlock: a: cannot watch processes: .*/proc'
	[ ! -e ran ]
	assert_equal "$(($(server_commands) - before))" 1
	run -78 timeout -s KILL 20 "${@:2}" rlock check
	assert_line --regexp "^BAD +proc +$1"
}

@test "without the /proc of its own PID namespace rlock runs no command, and check says why" {
	local others='/proc is that of another PID namespace; .*--mount-proc' none
	needs_namespaces
	refuses_there "$others" unshare --fork --pid --kill-child
	# Let rlock enter a PID namespace by nsenter, while /proc still shows the outer one.
	in_background unshare --fork --pid --kill-child sh -c 'touch made; exec run_until_ended'
	wait_until 5 file_exists made
	refuses_there "$others" nsenter --target "$(pgrep -P "$PID")" --pid
	# Use unshare --pid without --fork: then rlock stays in the old namespace, which /proc shows, and only its children are in
	# the new one.
	refuses_there 'processes that start here belong to another PID namespace than /proc; unshare --fork --mount-proc' unshare --pid
	is_running "$PID"
	none=(unshare --fork --pid --mount-proc --kill-child sh -c 'mount -t tmpfs none /proc && exec "$@"' sh)
	[ "${TESTS_UNDER-}" != sanitize ] || skip 'a sanitizer reads its options from /proc, and fails without it'
	"${none[@]}" true 2>/dev/null || skip 'no file system can be mounted here'
	refuses_there 'there is no /proc; mount' "${none[@]}"
}

@test "in a PID namespace with its own /proc rlock runs commands, and check calls it sound" {
	needs_namespaces
	run -7 unshare --fork --pid --mount-proc rlock run --wait-all a -- sh -c '$REDIS exists a; sleep 0.1 & exit 7'
	assert_output 1
	no_keys
	run -0 unshare --fork --pid --mount-proc rlock check
	assert_line --regexp '^ok +proc +shows'
	# Test also a namespace that rlock enters with nsenter.
	in_background unshare --fork --pid --mount-proc --kill-child sh -c 'touch made; exec run_until_ended'
	wait_until 5 file_exists made
	run -7 nsenter --target "$(pgrep -P "$PID")" --pid --mount rlock run a -- sh -c 'exit 7'
	no_keys
}

@test "the program contains no path of an environment or a command line in /proc" {
	[ -z "${TESTS_UNDER-}" ] || skip "$TESTS_UNDER reads environ and cmdline of its own process"
	run -0 readelf -p .rodata "$RLOCK_BIN"
	assert_line --regexp '(^|[ /])stat$'
	refute_line --regexp '(^|[ /])(environ|cmdline)$'
}

# Runs a command as nobody, where /proc hides the processes of other users.
HIDING=(unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' sh)

@test "a process that /proc hides is reported as hidden, not as missing" {
	local rlock
	not_under_valgrind 'it looks at processes itself'
	rlock=$(readlink -f "$(command -v rlock)")
	"${HIDING[@]}" test -x "$rlock" 2>/dev/null || skip 'no mount namespaces here, or another user cannot run rlock in one'
	! "${HIDING[@]}" test -e /proc/1 || skip 'nothing can be hidden here'
	run -71 "${HIDING[@]}" "$rlock" lock -u redis://127.0.0.1:1 --pid 1 --on-lost ignore a
	assert_one_line '^rlock: a: cannot watch process 1: /proc does not show it \(hidepid\?\)$'
}
