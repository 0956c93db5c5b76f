#!/usr/bin/env bats
# A lock for a process (--pid) whose first thread has ended: the process lives as long as one of its threads does.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	directory_setup
	in_background headless
	wait_until 5 file_exists headless
	OWNER=$PID
}

teardown() { watchful_teardown; }

@test "a process whose first thread has ended can have a lock, which is free when the process has ended" {
	run -0 rlock lock -t 1s --pid "$OWNER" a
	stays 2 is_held a
	let_go
	within 2 no_keys
	wait_until 3 nothing_runs
	no_hold_files
}

@test "a process whose first thread has ended can wait for a lock" {
	rlock lock --owner other -l 60s a
	in_background rlock lock -t 1s --pid "$OWNER" a
	wait_until 5 has_waiters a
	rlock unlock --owner other a
	ended_with 0
	stays 1.5 is_held a
	run -0 rlock unlock --pid "$OWNER" a
	no_keys
}

@test "a process whose first thread has ended can renew and release its lock" {
	run -0 rlock lock --pid "$OWNER" a
	run -0 rlock renew --pid "$OWNER" a
	run -0 rlock unlock --pid "$OWNER" a
	no_keys
	run -1 rlock unlock --pid "$OWNER" a
}
