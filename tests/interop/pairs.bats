#!/usr/bin/env bats
# Java and rlock with locks of all kinds: each is woken by the other's release, gives up in time, survives the other's death, renews,
# re-enters, and breaks the other's lock. What only one kind does has a file of its own.

load interop

# Rows of a held kind, a wanted kind and names: each takes another path through scripts and channels.
ROWS=('plain plain a' 'fair fair a' 'write read a' 'read write a' 'plain plain a,b')
WOKEN=("${ROWS[@]}" 'write write a' 'fair fair a,b' 'write write a,b')
# Redisson 3.13.6 has no RFencedLock.
[ "${REDISSON_VERSION-}" = 3.13.6 ] || WOKEN+=('fenced fenced a')
# RedissonFairLock of 3.13.6 tries again when the first lease that it saw has ended. If the lock is not free at that moment, the script
# returns a negative waiting time, and the thread sleeps until another waiter wakes it.
OUTLIVED=('plain plain a' 'write read a' 'read write a')
[ "${REDISSON_VERSION-}" = 3.13.6 ] || OUTLIVED+=('fair fair a')

# of_each FUNCTION ROW...: calls FUNCTION with the words of each row.
of_each() {
	local row
	for row in "${@:2}"; do
		echo "with: $row" >&2
		# shellcheck disable=SC2086
		"$1" $row
	done
}

@test "rlock waits for Java's lock and is woken by its release" {
	of_each rlock_is_woken "${WOKEN[@]}"
}

@test "Java waits for rlock's lock and is woken by its release" {
	of_each java_is_woken "${WOKEN[@]}"
}

@test "each gives up waiting for the other one when its time is over" {
	of_each each_gives_up "${ROWS[@]}"
}

@test "each gets in when the other one, which held the lock, was killed" {
	of_each rlock_outlives_java "${OUTLIVED[@]}"
	of_each java_outlives_rlock "${OUTLIVED[@]}"
}

@test "Java's watchdog keeps rlock out, and rlock's renewer Java" {
	of_each each_renews 'plain plain a' 'write read a' 'read write a'
}

java_enters_again() {
	rlock_queues "$@"
	java_locks T1 "$1" "$3"
	java_unlocks T1 "$1" "$3"
	stays_true_for 0.3 rlock_waits r
	java_unlocks T1 "$1" "$3"
	rlock_has_its_turn
}

@test "Java re-enters its lock while rlock waits, and leaves twice" {
	of_each java_enters_again "${ROWS[@]}"
}

rlock_enters_again() {
	rm -f ./*.in ./*.out
	words "$1" "$3"
	in_background rlock "${WORDS[@]}" "${WORDS_NAMES[@]}" -- bash -c '
		stay outer; rlock "$@" -- stay inner; stay last' bash "${WORDS[@]}" "${WORDS_NAMES[@]}"
	rlock_enters outer
	java_begins T1 lock "$2" "$3"
	wait_until 20 has_waiter "$2" "$3"
	touch outer.out
	rlock_enters inner
	assert_equal "$(owner_of inner)" "$(owner_of outer)"
	touch inner.out
	rlock_enters last
	java_waits T1 300
	touch last.out
	ended_with 0
	java_has_its_turn "$2" "$3"
}

@test "rlock re-enters its lock while Java waits, and leaves twice" {
	of_each rlock_enters_again "${ROWS[@]}"
}

neither_unlocks_the_others() {
	java_locks T1 "$1" a
	run -1 rlock unlock a
	java_does true T1 held "$1" a
	java_unlocks T1 "$1" a
	rlock_locks r "$1" a
	run -0 ask T1 unlock "$1" a
	assert_output --partial IllegalMonitorStateException
	rlock_leaves r
	nothing_is_left
}

@test "neither can unlock what the other one holds" {
	of_each neither_unlocks_the_others plain fair write read
}

rlock_breaks_javas() {
	java_locks T1 "$1" a
	java_begins T2 lock "$2" a
	wait_until 20 has_waiter "$2" a
	run -0 rlock unlock --force a
	takes_less_than 4 java_enters T2
	java_does false T1 held "$1" a
	java_unlocks T2 "$2" a
	nothing_is_left
}

@test "unlock --force takes Java's lock from it, and wakes Java's next" {
	of_each rlock_breaks_javas 'plain plain' 'write read'
}

java_breaks_rlocks() {
	rlock_locks r "$1" a -t 3s
	java_does true T1 force "$1" a
	ended_with 76 "${PIDS[r]}"
	nothing_is_left
}

@test "Java's forceUnlock ends a hold of rlock's" {
	of_each java_breaks_rlocks plain write read
}

@test "Java and rlock that name the same locks in different orders both get in" {
	java_locks T2 plain c
	java_locks T3 plain a
	java_begins T1 lock plain a,b,c
	rlock_begins r plain c,b,a
	wait_until 20 has_waiter plain a
	wait_until 20 has_waiter plain c
	java_unlocks T2 plain c
	java_unlocks T3 plain a
	both_have_turns a,b,c
	nothing_is_left
}
