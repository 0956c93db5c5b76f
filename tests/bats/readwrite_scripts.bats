#!/usr/bin/env bats
# Read and write locks without a command: of a script, of a process that --pid names, of an owner.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/scripting

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "a script acquires and releases a read and a write lock" {
	for shell in bash dash; do
		run -0 "$shell" -c '
			rlock rlock --pid $$ a
			$REDIS hvals a
			rlock unlock a
			$REDIS exists a
			rlock wlock --pid $$ a
			$REDIS hvals a
			rlock unlock a
			$REDIS dbsize
		'
		assert_output "read
1
0
write
1
0"
	done
}

@test "read and write are other names for rlock and wlock" {
	run -0 rlock read a -- ask_redis "$SERVER_SOCKET" hget a mode
	assert_output read
	run -0 rlock write a -- ask_redis "$SERVER_SOCKET" hget a mode
	assert_output write
	run -0 rlock rlock a -- rlock read a -- rlock rlock -n a -- true
	run -64 rlock wlock a -- env -u RLOCK_HELD rlock read -n a -- true
	run -64 rlock read a -- rlock write a -- true
	no_keys
}

@test "a shell that dies releases one of the read locks, and a waiter is woken by the last" {
	local first
	start_locking_script rlock a
	first=$PID
	start_locking_script rlock a
	queue_guest w wlock a
	kill -KILL "$first"
	has_two_fields() { redis_says 2 hlen a; }
	wait_until 5 has_two_fields
	stays_outside 0.2 w
	kill -KILL "${BACKGROUND[1]}"
	wait_until 5 is_inside w
}

@test "unlock releases what was locked last: the read, then the write" {
	run -0 bash -c '
		rlock wlock --pid $$ a
		rlock rlock --pid $$ a
		rlock rlock --pid $$ a
		$REDIS hvals a
		rlock unlock a
		$REDIS hvals a
		rlock unlock a
		$REDIS hvals a
		rlock unlock a
		$REDIS dbsize
		rlock unlock -q a 2>/dev/null
		echo $?
	'
	assert_output "write
1
2
write
1
1
write
1
0
1"
}

@test "the steps of a job acquire, re-enter and release read and write locks by their owner" {
	run -0 rlock wlock --owner job-1 --lease 1m a
	run -75 rlock rlock --owner job-2 --lease 1m -n a
	run -0 rlock wlock --owner job-1 --lease 1m -n a
	run -0 rlock rlock --owner job-1 --lease 1m -n a
	assert_equal "$(redis hgetall a)" "mode
write
job-1:0:write
2
job-1:0
1"
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	is_mode a write
	run -0 rlock unlock --owner job-1 a
	no_keys
	run -0 rlock rlock --owner job-1 --lease 1m a
	run -0 rlock rlock --owner job-2 --lease 1m -n a
	run -0 rlock rlock --owner job-1 --lease 1m -n a
	assert_equal "$(redis hvals a)" "read
2
1"
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	run -1 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-2 a
	no_keys
	nothing_runs
}
