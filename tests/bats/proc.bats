#!/usr/bin/env bats
# What rlock reads in /proc, and what it does without. If /proc belongs to another PID namespace it shows wrong pids, so rlock runs no
# command. rlock reads neither the environment nor the command line of other processes: such a read can hang forever, and those
# processes can change both.

load ../lib/usual
load ../lib/hold_processes

# Give the server a port, since other users cannot reach its socket.
setup_file() { start_server_at_port; }

# refuses_there WHAT COMMAND [ARG...]: runs rlock by COMMAND, which gives it other surroundings. rlock must exit with 71 and one
# line, and send no request, also for a lock that is held for a process or a descriptor. Locks of owners must work. `check` there
# must report /proc as bad because of WHAT.
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
	for verb in unlock renew 'unlock --pid 1' 'renew --pid 1'; do
		# shellcheck disable=SC2086
		run -71 timeout -s KILL 20 "${@:2}" rlock $verb a
		assert_one_line '^rlock: a: cannot watch processes: .*/proc'
	done
	for verb in '-n 9' '-u 9' '-n --fd 9 touch ran'; do
		# shellcheck disable=SC2086
		run -71 timeout -s KILL 20 "${@:2}" rlock flock $verb 9>lockfile
		assert_one_line '^rlock: cannot watch processes: .*/proc'
	done
	run -71 timeout -s KILL 20 "${@:2}" rlock lock -u local: --owner x --lease 1m a
	assert_one_line '^rlock: local: cannot look for the private server: .*/proc'
	[ ! -e "$RLOCK_RUNTIME_DIR/local.pid" ]
	[ ! -e ran ]
	assert_equal "$(($(server_commands) - before))" 1
	for verb in 'lock --lease 1m' renew unlock; do
		# shellcheck disable=SC2086
		run -0 timeout -s KILL 20 "${@:2}" rlock $verb --owner x a
	done
	rlock lock --lease 1m --owner x a
	run -0 timeout -s KILL 20 "${@:2}" rlock unlock --force a
	no_keys
	run -78 timeout -s KILL 20 "${@:2}" rlock check
	assert_line --regexp "^BAD +proc +$1"
}

@test "without the /proc of its own PID namespace rlock runs no command and judges no hold, and check says why" {
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

# hide: sets RLOCK, a program that this user can run, and THEIRS, a directory of this user, who finds nothing in that of the test.
hide() {
	not_under_valgrind 'it looks at processes itself'
	RLOCK=$(readlink -f "$(command -v rlock)")
	"${HIDING[@]}" test -x "$RLOCK" 2>/dev/null || skip 'no mount namespaces here, or another user cannot run rlock in one'
	! "${HIDING[@]}" test -e /proc/1 || skip 'nothing can be hidden here'
	THEIRS=$(mktemp -d /tmp/rlock-theirs.XXXXXX)
	chown 65534 "$THEIRS"
}

teardown() {
	# A renewer that has released its lock may still be removing its files there.
	[ -z "${THEIRS-}" ] || wait_until 5 rm -rf "$THEIRS"
	teardown_and_check_processes
}

@test "a process that /proc hides is reported as hidden, not as missing" {
	hide
	run -71 "${HIDING[@]}" "$RLOCK" lock -u redis://127.0.0.1:1 --pid 1 --on-lost ignore a
	assert_one_line '^rlock: a: cannot watch process 1: /proc does not show it \(hidepid\?\)$'
	run -71 "${HIDING[@]}" env RLOCK_RUNTIME_DIR="$THEIRS" "$RLOCK" unlock -u redis://127.0.0.1:1 --pid 1 a
	assert_one_line '^rlock: a: cannot see what process 1 holds: /proc does not show it \(hidepid\?\)$'
}

@test "rlock flock leaves its lock to a renewer that /proc hides, as with a password" {
	hide
	redis acl setuser hidden on '>pw' '~*' '&*' +@all >/dev/null
	takes_less_than 4 "${HIDING[@]}" env RLOCK_RUNTIME_DIR="$THEIRS" RLOCK_URL="redis://hidden:pw@127.0.0.1:$PORT" \
		"$RLOCK" flock "$THEIRS/f" sh -c 'sleep 8 >/dev/null 2>&1 3>&- &'
	is_held "$THEIRS/f"
	wait_until 20 no_keys
	redis acl deluser hidden >/dev/null
}
