#!/usr/bin/env bats
# bats file_tags=long
# A long line for a fair lock: what becomes of those far behind in it, which ask the server seldom, once they come near
# the head. What they cost is in line_many.bats.

# PIDS is line.bash's.
# shellcheck disable=SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/line

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { watchful_teardown; }

# has_passed MS SINCE_MS: on the server's clock.
has_passed() {
	(($(server_ms) - $2 > $1))
}

# alive_ms NAME OWNER: for how long its sign of life lasts still.
alive_ms() {
	local until
	read -r until _ < <(redis hget "$(waiters_key "$1")" "$2")
	echo $((until - $(server_ms)))
}

# is_alive_for LEAST MOST NAME POSITION: so many ms, of the waiter at that position, from 0 on.
is_alive_for() {
	local left
	left=$(alive_ms "$3" "$(redis lindex "$(queue_key "$3")" "$4")")
	(($1 < left && left <= $2))
}

@test "a waiter that comes near the head of a long line is heard of as often as the others there" {
	local since
	start_holder r0 fair a
	queue_waiters r{1..16}
	# When this one came, the line was not long.
	wait_until 5 is_alive_for 4000 14000 a 4
	kill "${PIDS[r2]}"
	wait_until 5 is_alive_for 0 4000 a 3
	# It lives on by its own signs.
	since=$(server_ms)
	wait_until 10 has_passed 5000 "$since"
	queue_becomes 1 a r1 r{3..16}
	is_alive_for 0 4000 a 3
	let_leave r0
	let_all_leave r1 r{3..16}
	nothing_is_left
}

@test "waiters in a long line that stand still near the head hold up the others for some seconds only" {
	start_holder r0 fair a
	queue_waiters r{1..16}
	wait_until 5 is_alive_for 4000 14000 a 4
	kill -STOP "${PIDS[r5]}"
	kill "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}" "${PIDS[r4]}"
	queue_becomes 8 a r{6..16}
	kill -CONT "${PIDS[r5]}"
	queue_becomes 5 a r{5..16}
	let_leave r0
	let_all_leave r{5..16}
	nothing_is_left
}
