#!/usr/bin/env bats
# bats file_tags=long
# Locks without a command: a script locks, works, and unlocks; or ends, and the lock is free. The scripts
# here are child processes, run by bash and by dash, and call redis-cli by $REDIS. The files lock_*.bats have the rest.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/scripting

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# What PID was called with begins so: a shell's -c is not met.
is_program() {
	name_of "$1" && [ "$NAME_OF_PROCESS" = "$2" ]
}

# ---- held, and released ----

@test "a lock taken for a script is held until the script unlocks it" {
	for shell in bash dash; do
		run -0 "$shell" -c '
			rlock lock --pid $$ a
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "1
0"
	done
}

@test "acquiring and releasing a lock says nothing" {
	run -0 bash -c 'rlock lock --pid $$ a; rlock unlock a; exit'
	assert_output ''
}

@test "without a command, --pid and --owner no lock is acquired, and the corrected line is shown" {
	export RLOCK_URL=redis://127.0.0.1:1
	for verb in lock fair read write rlock wlock 'sem --permits 3'; do
		# shellcheck disable=SC2086
		run -64 rlock $verb nightly
		assert_one_line "^rlock: ${verb%% *} without a COMMAND needs --pid or --owner: try: rlock ${verb%% *} --pid \\$\\$ (--permits 3 )?nightly\$"
	done
	no_hold_files
}

@test "a lock whose command has no -- before it is shown with one, too" {
	run -64 rlock lock -w 3s x echo hi
	assert_one_line 'try: rlock run -w 3s x -- echo hi, or for a process: rlock lock --pid \$\$ -w 3s x echo hi$'
	run -64 rlock fair x sh -c 'echo hi'
	assert_one_line "try: rlock fair x -- sh -c 'echo hi', or for a process: rlock fair --pid \\$\\$ x sh -c 'echo hi'\$"
	no_keys
	run -0 rlock run -w 3s x -- echo hi
	assert_output hi
}

@test "--pid of a process whose first thread has ended is taken" {
	in_background python3 -IS -c '
import ctypes, threading
threading.Thread(target=lambda: threading.Event().wait(60)).start()
ctypes.CDLL(None).pthread_exit(None)'
	wait_until 10 grep -qs '^State:[[:space:]]*Z' "/proc/$PID/status"
	run -0 rlock lock --pid "$PID" a
	is_held a
	kill -KILL "$PID"
	wait_until 5 is_free a
}

@test "unlock leaves no key, no process and no file behind" {
	start_script 'rlock lock --pid $$ a; rlock unlock a; touch "$READY"; until_let_go'
	wait_until 5 file_exists "$READY"
	no_keys
	nothing_runs
	no_hold_files
}

@test "a script that is killed with SIGKILL frees its lock soon" {
	start_locking_script lock a
	kill -KILL "$PID"
	wait_until 5 is_free a
	wait_until 5 no_keys
	wait_until 5 no_hold_files
}

@test "a script that ends without an unlock frees its lock soon" {
	for shell in bash dash; do
		run -0 "$shell" -c 'rlock lock --pid $$ a; $REDIS exists a'
		assert_output 1
		wait_until 5 is_free a
	done
	wait_until 5 no_hold_files
}

@test "a script that goes on as another program keeps its lock" {
	start_script 'rlock lock --pid $$ a; exec until_let_go'
	wait_until 5 is_held a
	wait_until 5 is_program "$PID" until_let_go
	is_held a
	let_go
	wait_until 5 is_free a
}

@test "what a script started does not keep the lock when the script has ended" {
	run -0 bash -c 'rlock lock --pid $$ a; until_let_go >/dev/null 2>&1 & exit 0'
	wait_until 5 is_free a
}

@test "a lock for a script is renewed for as long as the script runs" {
	start_locking_script lock -t 1s a
	stays 3.2 is_held a
	is_running "$PID"
}

@test "two scripts that lock the same name take turns" {
	printf 0 >"$BATS_TEST_TMPDIR/number"
	local -a pids=()
	for _ in 1 2 3; do
		in_background dash -c '
			for i in 1 2 3 4 5; do
				rlock lock --pid $$ a || exit
				read -r number <"$1"
				echo $((number + 1)) >"$1"
				rlock unlock a || exit
			done
		' script "$BATS_TEST_TMPDIR/number"
		pids+=("$PID")
	done
	for pid in "${pids[@]}"; do
		ended_with 0 "$pid"
	done
	assert_equal "$(cat "$BATS_TEST_TMPDIR/number")" 15
	no_keys
}

# ---- $( ), pipes, descriptors ----

@test "inside \$( ) lock returns at once, and the script has the lock" {
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			x=$(rlock lock --pid $$ a)
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "1
0"
	done
}

@test "in \$( ) with several commands the lock is the script's with --pid" {
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			x=$(cd /; rlock lock --pid $$ a; :)
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "1
0"
	done
}

@test "the line that it is told can be pasted, whatever the lock is called" {
	export NAME="my lock; it's"
	run -0 bash -c '
		said=$(rlock lock "$NAME" 2>&1)
		eval "${said##*: }" || exit
		$REDIS exists "$NAME"
		rlock unlock "$NAME"
		exit
	'
	assert_output 1
}

@test "lock in a session of its own is its caller's by --pid" {
	run -0 bash -c 'setsid -w rlock lock --pid $$ a; $REDIS exists a; rlock unlock a; $REDIS exists a'
	assert_output "1
0"
}

@test "in a pipeline lock returns, for its renewer keeps none of the caller's descriptors" {
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			rlock lock --pid $$ a 2>&1 | cat
			rlock lock --pid $$ a 7>&1 8>&1 | cat
			$REDIS hvals a
		'
		assert_output 2
	done
}

@test "a renewer holds on to no directory of the caller's" {
	mkdir "$BATS_TEST_TMPDIR/there"
	start_script 'cd "$1"; rlock lock --pid $$ a; touch "$READY"; until_let_go' "$BATS_TEST_TMPDIR/there"
	wait_until 5 file_exists "$READY"
	wait_until 5 [ "/proc/$(renewers)/cwd" -ef / ]
}

# ---- waiting ----

@test "lock waits for its turn" {
	hold_in_background a
	start_script 'rlock lock --pid $$ a; touch "$READY"; until_let_go'
	wait_until 5 has_waiters a
	run -1 file_exists "$READY"
	redis del a 'rlock_holds:{a}' >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	wait_until 5 file_exists "$READY"
	is_held a
}

@test "a lock that is not acquired leaves no trace" {
	held_by_stranger a
	run -75 rlock lock --pid $$ -n a
	assert_output ''
	run -75 rlock lock --pid $$ -w 50ms a
	nothing_runs
	no_hold_files
	assert_equal "$(redis dbsize)" 1
}

@test "the wait ends with the process that it is for, and leaves no trace" {
	held_by_stranger a
	start_script 'rlock lock --pid $$ a; :'
	wait_until 5 has_waiters a
	kill -KILL "$PID"
	wait_until 5 nothing_runs
	no_hold_files
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	no_keys
}

@test "the wait ends when the process given by --pid ends" {
	held_by_stranger a
	in_background until_let_go
	local whose=$PID
	in_background rlock lock --pid "$whose" a
	wait_until 5 has_waiters a
	kill -KILL "$whose"
	ended_with 75
	assert_equal "$(redis dbsize)" 1
}

@test "SIGTERM ends the wait, and rlock ends by it" {
	held_by_stranger a
	in_background rlock lock --pid $$ a
	wait_until 5 has_waiters a
	kill -TERM "$PID"
	ended_with 143
	no_hold_files
}

# ---- whose it is ----

@test "--pid gives the lock to another process, and it goes with that" {
	in_background until_let_go
	run -0 rlock lock --pid "$PID" a
	is_held a
	kill -KILL "$PID"
	wait_until 5 is_free a
}

@test "--pid of a process that does not exist is refused before anything is locked" {
	in_background true
	ended_with 0
	run -64 rlock lock --pid "$PID" a
	assert_one_line "^rlock: .*$PID.*$"
	no_keys
	no_hold_files
}
