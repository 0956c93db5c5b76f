#!/usr/bin/env bats
# bats file_tags=long
# What rlock flock does with hundreds of random command lines and scripts is what the machine's flock does with them.

load ../lib/usual

@test "what random words and scripts do is what they do with flock" {
	local count=300
	[ -z "${RLOCK_LONG_TESTS:-}" ] || count=2000
	directory_setup
	mkdir link cases
	ln -s "$RLOCK_BIN" link/flock
	cd cases
	run -0 flock_differs "$BATS_TEST_TMPDIR/link" "$count" 1
	assert_output "$count are the same"
	wait_until 10 no_keys
}
