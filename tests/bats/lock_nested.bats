#!/usr/bin/env bats
# A script that has the lock acquires it again, or starts another script or rlock run that does; and a script inside rlock run.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/scripting

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "a script that locks twice has to unlock twice" {
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock lock --pid $$ a
		$REDIS hvals a
		rlock unlock a
		$REDIS hvals a
		rlock unlock a
		$REDIS exists a
	'
	assert_output "2
1
0"
}

@test "rlock run inside a script that has the lock, or in its place, re-enters it" {
	run -0 timeout 10 bash -c '
		rlock lock --pid $$ a
		rlock run a -- $REDIS hvals a
		$REDIS hvals a
		exec rlock run a -- $REDIS hvals a
	'
	assert_output "2
1
2"
	wait_until 5 is_free a
}

@test "a child script enters its parent's lock and leaves it again" {
	run -0 bash -c '
		rlock lock --pid $$ a
		dash -c "rlock lock --pid \$\$ a; $REDIS hvals a; rlock unlock a"
		$REDIS hvals a
		rlock unlock a
		$REDIS exists a
	'
	assert_output "2
1
0"
}

@test "a child script that ends releases its own hold, and not its parent's" {
	start_script 'rlock lock --pid $$ a
		dash -c "rlock lock --pid \$\$ a; $REDIS hvals a >\"\$1\"" child "$1"
		touch "$READY"; until_let_go' "$BATS_TEST_TMPDIR/count"
	wait_until 5 file_exists "$READY"
	assert_equal "$(cat "$BATS_TEST_TMPDIR/count")" 2
	wait_until 5 has_count a 1
	is_running "$PID"
}

@test "two children of a script that has no lock do not share what one of them takes" {
	run -0 bash -c '
		dash -c "rlock lock --pid \$\$ a; touch \"$1/first\"; until_let_go" &
		until [ -e "$1/first" ]; do :; done
		dash -c "rlock lock -n --pid \$\$ a; echo \$?"
		touch "$1/let-go"
		wait
	' script "$BATS_TEST_TMPDIR"
	assert_output 75
}

@test "unlock inside rlock run does not reach for the hold of a script above it that was acquired inside" {
	run -0 bash -c '
		OUTER=$$ rlock run a -- sh -c "rlock lock --pid \$OUTER a; \$REDIS hvals a; rlock unlock a; echo \"status \$?\""
		$REDIS hvals a
		rlock unlock a
		$REDIS exists a
	'
	assert_output "2
rlock: a: held by 'rlock run', which releases it when its command ends
status 1
1
0"
}

@test "unlock finds the nearest hold of run, lock, run and lock inside each other" {
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock run a -- bash -c "
			rlock lock --pid \$\$ a
			rlock run a -- rlock unlock a
			rlock unlock a
			echo status \$?
			rlock unlock a
			echo status \$?
		"
		$REDIS hvals a
	'
	assert_output "rlock: a: held by 'rlock run', which releases it when its command ends
status 0
rlock: a: held by 'rlock run', which releases it when its command ends
status 1
1"
}

@test "when rlock run was killed, a lock inside its command is still nearer than the run" {
	in_background rlock run a -- sh -c '
		rlock lock --pid $$ a
		touch ready
		until_let_go
		rlock unlock a
		echo "$? $($REDIS hvals a)" >status
		rlock unlock a 2>said
		echo "$?" >>status
		touch finished'
	wait_until 5 file_exists ready
	kill -KILL "$PID"
	wait_until 5 is_gone "$PID"
	let_go
	wait_until 5 file_exists finished
	assert_equal "$(cat status)" "0 1
1"
	run -0 grep -c "held by 'rlock run'" said
	wait_until 5 is_free a
}

@test "a read lock that was acquired from outside for a process inside a run is that process's to release" {
	in_background rlock read a -- sh -c '
		echo $$ >pid
		touch ready
		until_let_go
		rlock unlock a
		echo $? >status'
	wait_until 5 file_exists ready
	run -0 rlock read --pid "$(<pid)" a
	let_go
	ended_with 0
	assert_equal "$(cat status)" 0
	no_keys
}

@test "unlock --pid of a process beside the run releases that process's lock" {
	in_background until_let_go
	rlock read --pid "$PID" a
	export OTHER=$PID
	run -0 rlock read a -- sh -c 'rlock unlock --pid "$OTHER" a; rlock unlock --pid "$OTHER" a; echo "status $?"'
	assert_line 'status 1'
	assert_line --regexp '^rlock: a: not held by process'
	no_keys
	no_hold_files
}
