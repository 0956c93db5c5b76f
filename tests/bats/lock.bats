#!/usr/bin/env bats
# bats file_tags=long
# Locks without a command: a script locks, works, and unlocks; or ends, and the lock is free. The scripts
# here are child processes, run by bash and by dash, and call redis-cli by $REDIS. The files lock_*.bats have the rest.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
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

@test "a lock taken for a script, in \$( ) too, is held until the script unlocks it, without a word, and nothing is left" {
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			x=$(cd /; rlock lock --pid $$ a; :)
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
			exit
		'
		assert_output "1
0"
	done
	no_keys
	nothing_runs
	no_hold_files
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

@test "a script that is killed with SIGKILL frees its lock soon" {
	start_locking_script lock a
	kill -KILL "$PID"
	wait_until 5 is_free a
	wait_until 5 no_keys
	wait_until 5 no_hold_files
}

@test "a script that ends without an unlock frees its lock soon, whatever it has started" {
	run -0 bash -c 'rlock lock --pid $$ a; $REDIS exists a; until_let_go >/dev/null 2>&1 & exit 0'
	assert_output 1
	wait_until 5 is_free a
	wait_until 5 no_hold_files
	let_go
}

@test "a script that goes on as another program keeps its lock" {
	start_script 'rlock lock --pid $$ a; exec until_let_go'
	wait_until 5 is_held a
	wait_until 5 is_program "$PID" until_let_go
	is_held a
	let_go
	wait_until 5 is_free a
}

@test "a lock for a script is renewed for as long as the script runs" {
	start_locking_script lock -t 3s a
	for _ in 1 2; do
		redis pexpire a 2250 >/dev/null
		wait_until 5 ttl_is_above a 2250
	done
	is_running "$PID"
}

@test "in a pipeline lock returns, for its renewer keeps none of the caller's descriptors" {
	run -0 timeout 10 bash -c '
		rlock lock --pid $$ a 2>&1 | cat
		rlock lock --pid $$ a 7>&1 8>&1 | cat
		$REDIS hvals a
	'
	assert_output 2
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

@test "the wait ends when the process ends that it is for, and leaves no trace" {
	held_by_stranger a
	in_background until_let_go
	local whose=$PID
	in_background rlock lock --pid "$whose" a
	wait_until 5 has_waiters a
	kill -KILL "$whose"
	ended_with 75
	nothing_runs
	no_hold_files
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	no_keys
}

@test "SIGTERM ends the wait, and rlock ends by it" {
	held_by_stranger a
	in_background rlock lock --pid $$ a
	wait_until 5 has_waiters a
	kill -TERM "$PID"
	ended_with 143
	no_hold_files
}
