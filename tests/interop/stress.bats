#!/usr/bin/env bats
# Four Java threads and four shells take turns, 2000 of them or $TURNS. Whether two are inside at a time is seen
# outside the server, by files; see commands/turn and Stress.java.

load interop
load stress

TURNS=${TURNS:-2000}

# ---- each kind ----

# A turn of a shell begins processes, so that its share is smaller the busier the machine; how long none waits is not.
@test "plain locks: one at a time, and each side has its share" {
	play plain a 50
	nothing_was_wrong
	one_at_a_time
	each_side_had 16
	none_waited_longer_than 15000
	nothing_is_left
}

# Without a pause a shell is there again before a Java thread has come from a message to its next try.
@test "plain locks that are asked for all the time: one at a time, and each side has its share" {
	play plain a 5
	nothing_was_wrong
	one_at_a_time
	each_side_had 16
	none_waited_longer_than 15000
	nothing_is_left
}

@test "fair locks: one at a time, in the order of the line, and each side has its share" {
	play fair a 10
	nothing_was_wrong
	one_at_a_time
	in_the_order_of_the_queue
	each_side_had 16
	none_waited_longer_than 15000
	nothing_is_left
}

# writers_are_alone PAUSE_MS
writers_are_alone() {
	play readwrite a "$1"
	nothing_was_wrong
	each_side_had 16
	none_waited_longer_than 15000
	assert_equal "$(ls -d writer reader.* 2>/dev/null)" ''
	nothing_is_left
}

@test "read and write locks: writers are alone, and each side has its share" {
	writers_are_alone 50
}

@test "read and write locks that are asked for all the time: writers are alone, and each side has its share" {
	writers_are_alone 5
}

@test "two names at once: one at a time, and each side has its turns" {
	play plain a,b 50
	nothing_was_wrong
	one_at_a_time
	each_side_had 16
	nothing_is_left
}
