#!/usr/bin/env bats
# rlock run: the lock is held while the command runs, and what the command ends with is what rlock ends
# with.

load helpers

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() { common_setup; }
teardown() { common_teardown; }

@test "the command's exit status is rlock's" {
	run -7 rlock run a -- sh -c 'exit 7'
	assert_output ''
}

@test "while the command runs the lock is held, and afterwards no key is left" {
	run -0 rlock run a -- redis-cli -s "$SERVER_SOCKET" exists a
	assert_output 1
	no_keys
}

@test "a second caller who does not wait is turned away without a word" {
	hold_in_background a
	run -75 rlock run -n a -- true
	assert_output ''
}

@test "a second caller who waits gets the lock when the first one ends" {
	hold_in_background a
	in_background rlock run a -- touch "$BATS_TEST_TMPDIR/second"
	let_go
	wait_until 5 file_exists "$BATS_TEST_TMPDIR/second"
	wait_until 5 no_keys
}
