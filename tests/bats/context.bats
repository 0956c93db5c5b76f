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

@test "under nohup rlock and its command survive a hangup" {
	in_background nohup rlock run a -- until_let_go
	wait_until 5 is_held a
	wait_until 5 has_renewer "$PID"
	kill -HUP "$PID"
	# The signal has been passed on, if it ever is, before the next one.
	kill -WINCH "$PID"
	is_running "$PID"
	is_held a
	let_go
	ended_with 0
	no_keys
}

@test "a command started in the background by a script keeps the lock when the script has ended" {
	run -0 sh -c 'rlock run a -- until_let_go >/dev/null 2>&1 3>&- & exit 0'
	wait_until 5 is_held a
	let_go
	wait_until 5 no_keys
}

@test "a script waits for rlock in the background and gets its status" {
	run -7 sh -c 'rlock run a -- sh -c "exit 7" & wait $!'
	run -143 sh -c 'rlock run a -- sh -c "kill -TERM \$\$" & wait $!'
}

@test "timeout ends the command and frees the lock" {
	run -124 timeout 3 rlock run a -- sh -c 'echo $$ >child; sleep 60; exit 1'
	assert [ -s child ]
	is_gone "$(cat child)"
	no_keys
}

@test "timeout --foreground, which tells rlock alone, ends the command too" {
	run -124 timeout --foreground 3 rlock run a -- sh -c 'echo $$ >child; sleep 60; exit 1'
	assert [ -s child ]
	is_gone "$(cat child)"
	no_keys
}

@test "timeout ends a wait for the lock" {
	held_by_stranger a
	in_background timeout 3 rlock run a -- touch ran
	wait_until 5 has_waiters a
	ended_with 124
	[ ! -e ran ]
	wait_until 5 has_waiters a 0
}

@test "timeout inside rlock run ends the command" {
	run -124 rlock run a -- timeout 0.2 sleep 60
	no_keys
}

@test "xargs -P runs one at a time" {
	run -0 sh -c 'seq 20 | xargs -P 4 -n 1 sh -c "rlock run a -- ./increment"'
	assert_equal "$(cat number)" 20
	no_keys
}

@test "a loop keeps its standard input" {
	printf 'one\ntwo\nthree\n' >lines
	run -0 sh -c 'while read -r line; do rlock run a -- echo "$line"; done <lines'
	assert_output "one
two
three"
}

@test "the command reads rlock's standard input" {
	run -0 sh -c 'printf "one\ntwo\n" | rlock run a -- cat'
	assert_output "one
two"
}

@test "a pipeline reads rlock's standard output, and ends with the command" {
	run -0 timeout 10 sh -c 'rlock run a -- seq 3 | cat'
	assert_output "1
2
3"
}

@test "a pipeline that does not read to the end stops the command as it would without rlock" {
	run -0 timeout 10 bash -o pipefail -c 'rlock run a -- yes | head -n 1; echo "${PIPESTATUS[0]}"'
	assert_output "y
141"
	no_keys
}

@test "a script with set -e ends where the lock was not acquired" {
	held_by_stranger a
	run -75 sh -ec 'rlock run -n a -- true; echo "not reached"'
	assert_output ''
	run -75 sh -ec 'rlock lock --pid $$ -n a; echo "not reached"'
	assert_output ''
}

@test "a script with set -e goes on after its command" {
	run -0 sh -euc 'rlock run a -- true; rlock lock --pid $$ a; rlock unlock a; echo reached'
	assert_output reached
}

@test "a script without a first line runs as a command" {
	echo 'exit 7' >script
	chmod +x script
	run -7 rlock run a -- ./script
}

@test "a command that is stopped may clean up with programs of its own" {
	cat >job <<-'EOS'
		#!/bin/sh
		trap 'sh -c "sleep 0.4; touch cleaned"; exit 3' TERM
		touch ready
		until [ -e let-go ]; do sleep 0.02; done
	EOS
	chmod +x job
	in_background rlock run -q --max-run 4s a -- ./job
	ended_with 124
	file_exists ready
	file_exists cleaned
	no_keys
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

@test "with standard streams closed the lock is renewed, and released" {
	in_background sh -c 'exec rlock run -t 3s a -- until_let_go <&- >&- 2>&-'
	wait_until 5 is_held a
	stays 3.3 is_held a
	let_go
	ended_with 0
	no_keys
}

@test "with standard streams closed and no /dev/null, no connection becomes a standard stream" {
	unshare -rm mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
	local pid fd
	in_background unshare -rm sh -c 'mount -t tmpfs none /dev &&
		exec rlock run -t 3s a -- sh -c "
			for fd in 0 1 2; do [ ! -e /proc/\$\$/fd/\$fd ] || echo \$fd >>open; done
			exec until_let_go" <&- >&- 2>&-'
	wait_until 5 is_held a
	stays 3.3 is_held a # renewed
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

@test "with standard streams closed a script locks and unlocks" {
	run -0 bash -c '
		rlock lock --pid $$ a <&- >&- 2>&- || exit
		$REDIS exists a
		rlock unlock a <&- >&- 2>&- || exit
		$REDIS exists a
	'
	assert_output "1
0"
}

@test "with standard streams closed a second one waits for its turn" {
	held_by_stranger a
	in_background sh -c 'exec rlock run a -- touch ran <&- >&- 2>&-'
	wait_until 5 has_waiters a
	rlock unlock -q --force a
	ended_with 0
	file_exists ran
}

@test "with standard error a pipe that is not read a command is stopped all the same, and its lock is free" {
	mkfifo unread
	exec 9<>unread
	head -c 65536 /dev/zero >&9
	in_background sh -c 'exec rlock run --max-run 3s a -- sleep 60 2>&9'
	wait_until 5 is_held a
	wait_until 20 is_gone "$PID"
	ended_with 124
	no_keys
	exec 9>&-
}

@test "with standard error on a full disk the status is still right" {
	held_by_stranger a
	run -75 sh -c 'rlock run -w 20ms a -- true 2>/dev/full'
	run -0 sh -c 'rlock run -v b -- true 2>/dev/full'
}

@test "the command gets the caller's own descriptors and none of rlock's" {
	local without
	without=$(sh -c 'ls /proc/$$/fd; :' 7</dev/null)
	run -0 rlock run a -- sh -c 'ls /proc/$$/fd; :' 7</dev/null
	assert_output "$without"
	assert_line 7
}

# ---- environments ----

@test "with no environment at all rlock runs a command given by its path" {
	run -0 env -i "$RLOCK" run -u "$RLOCK_URL" a -- /usr/bin/env
	assert_line RLOCK_NAME=a
	assert_line RLOCK_MODE=plain
	no_keys
}

@test "with no PATH a command is looked for where the system has its programs" {
	run -0 env -i "$RLOCK" run -u "$RLOCK_URL" a -- sh -c 'echo found'
	assert_output found
}

@test "cron calls it with a poor environment and without a terminal" {
	run -0 env -i HOME="$BATS_TEST_TMPDIR" LOGNAME=cron SHELL=/bin/sh PATH="${RLOCK%/*}:/usr/bin:/bin" \
		setsid -w /bin/sh -c "rlock run -n -u '$RLOCK_URL' a -- sh -c 'echo \$RLOCK_NAME'" </dev/null
	assert_output a
	no_keys
}

@test "cron gets no mail when the lock is busy, and everything can stand in the file" {
	held_by_stranger a
	mkdir -p .config
	printf 'url = %s\nno-wait = yes\nconflict-exit-code = 0\n' "$RLOCK_URL" >.config/rlock.conf
	run -0 env -i HOME="$BATS_TEST_TMPDIR" LOGNAME=cron SHELL=/bin/sh PATH="${RLOCK%/*}:/usr/bin:/bin" \
		setsid -w /bin/sh -c 'rlock run a -- echo ran' </dev/null
	assert_output ''
}

@test "a service without a terminal, session and environment gets SIGTERM, and ends by it" {
	in_background env -i PATH="$PATH" BATS_TEST_TMPDIR="$BATS_TEST_TMPDIR" \
		RLOCK_RUNTIME_DIR="$RLOCK_RUNTIME_DIR" setsid rlock run -u "$RLOCK_URL" a -- until_let_go </dev/null
	wait_until 5 is_held a
	wait_until 5 has_renewer "$PID"
	wait_until 5 has_command "$PID"
	local command
	command=$(command_of "$PID")
	kill -TERM "$PID"
	ended_with 143
	is_gone "$command"
	no_keys
}

@test "a service that is told by its whole group ends, and frees its lock" {
	in_background setsid rlock run a -- until_let_go
	wait_until 5 is_held a
	wait_until 5 has_renewer "$PID"
	kill -TERM -- "-$PID"
	ended_with 143
	no_keys
}

@test "in a session of its own the command's status is rlock's" {
	run -7 setsid -w rlock run a -- sh -c 'exit 7'
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

@test "in a directory that was removed rlock works" {
	mkdir there
	run -0 sh -c 'cd there && rmdir ../there && rlock run a -- $REDIS exists a'
	assert_line 1
	no_keys
}

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

@test "in a directory that can't be written to rlock works, and the command runs there" {
	cd /proc
	run -0 rlock run a -- pwd
	assert_output /proc
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

@test "as process 1 the command's status is rlock's" {
	needs_namespaces
	run -7 as_first_process rlock run a -- sh -c 'exit 7'
	no_keys
}

@test "as process 1 a command that a signal ended gives 128 and its number" {
	needs_namespaces
	needs_mild_signals
	run -137 as_first_process rlock run a -- sh -c 'kill -KILL $$'
	run -143 as_first_process rlock run a -- sh -c 'kill -TERM $$'
	no_keys
}

@test "as process 1 rlock reaps what the command's processes leave behind" {
	needs_namespaces
	run -0 as_first_process rlock run a -- sh -c '
		for i in 1 2 3 4 5; do (sh -c "exit 3" & exit 0); done
		are_left() { cat /proc/[0-9]*/stat 2>/dev/null | grep -v "^$$ " | grep -E "\(sh\) [A-Z] (1|$PPID) "; }
		i=0
		while [ $((i += 1)) -lt 500 ] && are_left >/dev/null; do :; done
		! are_left
	'
	assert_output ''
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

@test "as process 1 rlock ends by SIGTERM while it waits" {
	needs_namespaces
	needs_mild_signals
	held_by_stranger a
	in_background unshare --fork --pid --mount-proc rlock run a -- true
	wait_until 5 has_waiters a
	kill -TERM "$(pgrep -P "$PID")"
	ended_with 143
	wait_until 5 has_waiters a 0
}

# A pid namespace whose /proc is empty.
WITHOUT_PROC=(unshare --fork --pid --mount-proc --kill-child
	sh -c 'mount -t tmpfs none /proc && exec "$@"' sh)

needs_empty_proc() {
	"${WITHOUT_PROC[@]}" true 2>/dev/null || skip 'no namespaces here'
	[ -z "${TESTS_UNDER:-}" ] || skip "$TESTS_UNDER can't do without /proc"
}

# runs_elsewhere COMMAND...: a script has a lock meanwhile, and finds it again.
runs_elsewhere() {
	in_background bash -c 'rlock lock --pid $$ a && touch had; until_let_go; rlock unlock a; echo "$?" >unlocked'
	wait_until 5 file_exists had
	run -0 "$@"
	let_go
	wait_until 5 grep -qsx 0 unlocked
	ended_with 0
	no_keys
}

@test "a call that shares the runtime directory, but no numbers of processes, leaves the locks of others alone" {
	needs_namespaces
	runs_elsewhere unshare --fork --pid --mount-proc rlock run b -- true
}

@test "a call that cannot see processes leaves the locks of others alone" {
	needs_empty_proc
	runs_elsewhere "${WITHOUT_PROC[@]}" sh -c 'rlock lock --owner x -l 20s b && rlock unlock --owner x b'
}
