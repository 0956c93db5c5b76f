#!/usr/bin/env bats
# Semaphores of which Java threads and shells have permits: RPermitExpirableSemaphore's and RSemaphore's, on one counter.
# Eight threads and eight shells take turns, 2000 of them or $TURNS; see stress.bash and Stress.java.

load interop
load stress

TURNS=${TURNS:-2000}

# is_whole NAME TOTAL: no permit is held, and nothing else is left.
is_whole() {
	[ "$(redis get "$1")" = "$2" ] && [ "$(redis keys '*' | sort | paste -s -d ' ')" = "$1 rlock_total:{$1}" ]
}

has_free() { [ "$(redis get "$1")" = "$2" ]; }

# hold_permit PARTY NAME TOTAL [OPTION...]
hold_permit() {
	in_background rlock sem --permits "$3" "${@:4}" "$2" -- stay "$1"
	# Of rlock_leaves and rlock_dies.
	# shellcheck disable=SC2034
	PIDS[$1]=$PID
	rlock_enters "$1"
}

@test "three at a time, each side has its share, and the total is three at the end" {
	# Of play.
	# shellcheck disable=SC2034
	local PARTIES=8
	play sem a 20
	nothing_was_wrong
	each_side_had 4
	none_waited_longer_than 20000
	assert_equal "$(ls -d slot.* 2>/dev/null)" ''
	wait_until 20 is_whole a 3
}

@test "Java's permits of both sorts exclude rlock, and a release of either lets it in" {
	local kind
	for kind in expirable semaphore; do
		java_does true T permits "$kind" a 1
		java_does ok T acquire "$kind" a
		run -75 rlock sem -q -n --permits 1 a -- true
		in_background rlock sem -q --permits 1 a -- true
		wait_until 20 has_waiters a 1
		java_does ok T release "$kind" a
		wait_until 10 is_gone "$PID"
		wait_until 20 has_free a 1
		redis del a 'rlock_total:{a}'
	done
}

@test "a permit of rlock excludes Java's of both sorts, and its release lets each in" {
	local kind
	for kind in expirable semaphore; do
		java_does true T permits "$kind" a 1
		hold_permit R a 1
		java_begins T acquire "$kind" a
		java_waits T 300
		rlock_leaves R
		java_enters T
		java_does ok T release "$kind" a
		wait_until 20 has_free a 1
		rm -f R.in R.out
		redis del a 'rlock_total:{a}'
	done
}

@test "a permit of an rlock that died goes to Java when its lease and 10 s are over, or at once when an rlock comes" {
	java_does true T permits expirable a 1
	hold_permit R a 1 -t 2s
	rlock_dies R
	java_begins T acquire expirable a
	java_waits T 1000
	wait_until 20 rlock sem -q -n --permits 1 a -- true
	java_enters T
	java_does ok T release expirable a
	hold_permit R2 a 1 -t 2s
	rlock_dies R2
	java_begins T acquire expirable a
	java_enters T
	java_does ok T release expirable a
	wait_until 20 is_whole a 1
}

@test "Java counts the permits of rlock" {
	java_does true T permits expirable a 5
	hold_permit R a 5 --take 2
	java_does 3 T available expirable a
	rlock_leaves R
	java_does 5 T available expirable a
}
