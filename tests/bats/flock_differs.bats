#!/usr/bin/env bats
# bats file_tags=long
# What rlock flock does with hundreds of random command lines and scripts is what the machine's flock does with them, but for the list of
# rlock-flock(1).

load ../lib/usual

setup() {
	directory_setup
	mkdir link cases
	ln -s "$RLOCK_BIN" link/flock
}

@test "what random words and scripts do is what they do with flock" {
	local count=300
	[ -z "${RLOCK_LONG_TESTS:-}" ] || count=2000
	cd cases || return
	run -0 flock_differs "$BATS_TEST_TMPDIR/link" "$count" 1
	assert_line --regexp '^[0-9]+ are the same$'
	refute_line --partial 'differ by no rule'
	assert [ "$(sed -n 's/ are the same$//p' <<<"$output")" -gt $((count / 2)) ]
	wait_until 10 no_keys
}
