#!/usr/bin/env bats
# Four Java threads and four shells take turns, 2000 of them or $TURNS. Whether two are inside at a time is seen
# outside the server, by files; see commands/turn and Stress.java.

load interop
load stress

TURNS=${TURNS:-2000}

setup_file() {
	start_tcp_server
	start_common_java
}

teardown_file() {
	stop_java
	stop_server
}

setup() { interop_setup; }

teardown() {
	touch stop
	interop_teardown
}

# ---- each kind ----

# No side has a right to a share of a plain lock; but neither side may shut the other one out. On a busy machine Java
# had one turn in fourteen, on an idle one three in ten.
@test "plain locks: one at a time, and each side has its turns" {
	play plain a 50
	nothing_was_wrong
	one_at_a_time
	each_side_had 50
	nothing_is_left
}

# The first request acquires a plain lock. Without a pause that is nearly always an rlock's: Java's way from a
# message to its next try is longer.
@test "plain locks that are asked for all the time: one at a time, and every one gets in" {
	play plain a 5
	nothing_was_wrong
	one_at_a_time
	none_waited_longer_than 30000
	nothing_is_left
}

@test "fair locks: one at a time, in the order of the line, and each side has its share" {
	play fair a 10
	nothing_was_wrong
	one_at_a_time
	in_the_order_of_the_queue
	each_side_had 4
	none_waited_longer_than 10000
	nothing_is_left
}

@test "read and write locks: writers are alone, and each side has its turns" {
	play readwrite a 50
	nothing_was_wrong
	each_side_had 10
	assert_equal "$(ls -d writer reader.* 2>/dev/null)" ''
	nothing_is_left
}

@test "two names at once: one at a time, and each side has its turns" {
	play plain a,b 50
	nothing_was_wrong
	one_at_a_time
	each_side_had 10
	nothing_is_left
}
