#!/usr/bin/env bats
# bats file_tags=alone
# Among thousands of processes. Each rlock that terminates a command looks at all of them, so other files that watch
# leases do not run meanwhile.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

@test "among thousands of processes a command is stopped before the lease ends, too" {
	local end holder
	hold_with_family a -t 3s
	holder=$PID
	in_background sh -c 'exec crowd 4000 >crowded'
	wait_until 20 file_says crowded ready
	wait_until 5 is_renewed a 3000
	before_renewal "$holder" knowing_end kill -s STOP "$SERVER_PID"
	watch_family 5
	# shellcheck disable=SC2153
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
}
