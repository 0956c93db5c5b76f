#!/usr/bin/env bats
# Where rlock is called from: nohup, a job in the background, timeout, xargs, loops, cron, a container, a
# service, with closed streams, with no environment, in a directory that is not there any more.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	directory_setup
	RLOCK=$(command -v rlock)
	cat >increment <<-'EOS'
		#!/bin/sh
		read -r number <number
		echo $((number + 1)) >number
	EOS
	chmod +x increment
	echo 0 >number
}

teardown() {
	cd /
	watchful_teardown
}

# ---- shells ----

@test "timeout ends the command and frees the lock" {
	run -124 timeout 3 rlock run a -- sh -c 'echo $$ >child; sleep 60; exit 1'
	assert [ -s child ]
	is_gone "$(cat child)"
	no_keys
}

@test "a loop keeps its standard input, and a pipeline reads and ends as it would without rlock" {
	printf 'one\ntwo\n' >lines
	run -0 sh -c 'while read -r line; do rlock run a -- echo "$line"; done <lines'
	assert_output $'one\ntwo'
	run -0 timeout 20 bash -c 'rlock run a -- cat <lines | cat'
	assert_output $'one\ntwo'
	run -0 timeout 20 bash -o pipefail -c 'rlock run a -- yes | head -n 1; echo "${PIPESTATUS[0]}"'
	assert_output $'y\n141'
	no_keys
}

@test "a script with set -e ends where the lock was not acquired, and goes on after its command" {
	held_by_stranger a
	run -75 sh -ec 'rlock run -n a -- true; echo "not reached"'
	assert_output ''
	run -75 sh -ec 'rlock lock --pid $$ -n a; echo "not reached"'
	assert_output ''
	run -0 sh -euc 'rlock run b -- true; rlock lock --pid $$ b; rlock unlock b; echo reached'
	assert_output reached
}

# ---- streams ----

@test "with all standard streams closed the command runs, and finds them closed" {
	run -7 bash -c 'rlock run a -- bash -c "
		for fd in 0 1 2; do [ ! -e /proc/\$\$/fd/\$fd ] || echo \$fd >>open; done
		exit 7" <&- >&- 2>&-'
	[ ! -e open ] || run -0 cat open
	[ ! -e open ]
	no_keys
}

@test "a standard stream that is closed, and that nothing can stand in for, is an error before anything else" {
	needs_refuse
	[ -z "${TESTS_UNDER:-}" ] || skip "$TESTS_UNDER opens files before rlock does"
	local fd
	for fd in 0 1; do
		run -71 refuse refused rlock openat EMFILE 1 sh -c "exec rlock run a -- touch ran $fd>&-"
		assert_output 'rlock: descriptor 0, 1 or 2 is closed, and cannot open / in its place: Too many open files'
	done
	run -71 refuse refused rlock openat EMFILE 1 sh -c 'exec rlock lock --owner x --lease 20s a 2>&-'
	[ ! -e ran ]
	no_keys
}

@test "with standard streams closed and no /dev/null, no connection becomes a standard stream" {
	unshare -rm mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
	local pid fd
	in_background unshare -rm sh -c 'mount -t tmpfs none /dev &&
		exec rlock run -t 1s a -- sh -c "
			for fd in 0 1 2; do [ ! -e /proc/\$\$/fd/\$fd ] || echo \$fd >>open; done
			exec until_let_go" <&- >&- 2>&-'
	wait_until 5 is_held a
	stays 1.3 is_held a # renewed
	for pid in "$PID" $(renewer_of "$PID"); do
		for fd in 0 1 2; do
			run -0 readlink "/proc/$pid/fd/$fd"
			assert_output /
		done
	done
	let_go
	ended_with 0
	[ ! -e open ]
	no_keys
}

@test "with standard error on a full disk the status is still right" {
	held_by_stranger a
	run -75 sh -c 'rlock run -w 20ms a -- true 2>/dev/full'
	run -0 sh -c 'rlock run -v b -- true 2>/dev/full'
}

# ---- environments ----

@test "with no environment at all rlock runs a command, which is looked for where the system has its programs" {
	run -0 env -i "$RLOCK" run -u "$RLOCK_URL" a -- env
	assert_line RLOCK_NAME=a
	assert_line RLOCK_MODE=plain
	no_keys
}

@test "cron, with a poor environment and without a terminal, gets no mail when the lock is busy, and the file says the rest" {
	mkdir -p .config
	printf 'url = %s\nno-wait = yes\nconflict-exit-code = 0\n' "$RLOCK_URL" >.config/rlock.conf
	local cron=(env -i HOME="$BATS_TEST_TMPDIR" LOGNAME=cron SHELL=/bin/sh PATH="${RLOCK%/*}:/usr/bin:/bin" setsid -w /bin/sh -c)
	run -0 "${cron[@]}" 'rlock run a -- sh -c "echo \$RLOCK_NAME"' </dev/null
	assert_output a
	no_keys
	held_by_stranger a
	run -0 "${cron[@]}" 'rlock run a -- echo ran' </dev/null
	assert_output ''
}

@test "a service that is told by its whole group ends, and frees its lock" {
	in_background setsid rlock run a -- until_let_go
	wait_until 5 is_held a
	wait_until 5 has_renewer "$PID"
	kill -TERM -- "-$PID"
	ended_with 143
	no_keys
}

@test "under sudo a lock is a lock" {
	sudo -n true 2>/dev/null || skip 'no sudo without a password here'
	run -7 sudo -n "$RLOCK" run -u "$RLOCK_URL" a -- sh -c 'exit 7'
	run -75 rlock run a -- sudo -n "$RLOCK" run -u "$RLOCK_URL" -n a -- true
	run -0 rlock run a -- sudo -n redis-cli -s "$SERVER_SOCKET" exists a
	assert_output 1
	no_keys
}

# ---- directories ----

@test "in a directory that was removed a script locks and unlocks" {
	mkdir there
	run -0 --separate-stderr bash -c '
		cd there && rmdir ../there && rlock lock --pid $$ a || exit
		$REDIS exists a
		rlock unlock a || exit
		$REDIS exists a
	'
	assert_line -n -2 1
	assert_line -n -1 0
}

@test "the directory of a command can be unmounted or removed once rlock runs elsewhere" {
	mkdir there
	in_background sh -c 'cd there; exec rlock run a -- until_let_go'
	wait_until 5 has_renewer "$PID"
	wait_until 5 is_at / "$(renewer_of "$PID")"
}

is_at() {
	[ "$(readlink "/proc/$2/cwd")" = "$1" ]
}

# ---- containers ----

# A pid namespace in which rlock is process 1.
as_first_process() {
	unshare --fork --pid --mount-proc --kill-child "$@"
}

needs_namespaces() {
	as_first_process true 2>/dev/null || skip 'no pid namespaces here'
}

# For a process 1 that sends itself a signal, which the kernel then leaves out.
needs_mild_signals() {
	not_under_valgrind 'it takes each signal of that kind for the end'
}

@test "as process 1 the command's status is rlock's, and 128 and its number that of a signal" {
	needs_namespaces
	run -7 as_first_process rlock run a -- sh -c 'exit 7'
	needs_mild_signals
	run -137 as_first_process rlock run a -- sh -c 'kill -KILL $$'
	run -143 as_first_process rlock run a -- sh -c 'kill -TERM $$'
	no_keys
}

@test "as process 1 rlock passes SIGTERM on, as a container is stopped" {
	needs_namespaces
	in_background unshare --fork --pid --mount-proc rlock run a -- \
		sh -c 'trap "touch told; exit 9" TERM; touch ready; while :; do sleep 0.02; done'
	wait_until 5 file_exists ready
	kill -TERM "$(pgrep -P "$PID")"
	ended_with 9
	file_exists told
	wait_until 5 no_keys
}
