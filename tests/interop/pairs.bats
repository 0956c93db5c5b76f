#!/usr/bin/env bats
# Java and rlock with locks of all kinds: each is woken by the other's release, stops waiting in time, acquires the lock of a killed
# holder, renews, re-enters, and breaks the other's lock. Other files test what is special to one kind.

load interop

# Each row: the kind that is held, the kind that is wanted, and the names. Different rows use different scripts and channels.
ROWS=('plain plain a' 'fair fair a' 'write read a' 'read write a' 'plain plain a,b')
WOKEN=("${ROWS[@]}" 'write write a' 'fair fair a,b' 'write write a,b')
# Leave out fenced locks for Redisson 3.13.6, which has no RFencedLock.
[ "${REDISSON_VERSION-}" = 3.13.6 ] || WOKEN+=('fenced fenced a')
# Leave out fair locks for Redisson 3.13.6, whose waiters can miss that a holder was killed. They try again when the first lease
# that they saw has ended. If the lock is not free at that time, because it was renewed, the script returns a negative time, and
# the thread sleeps until it is woken.
OUTLIVED=('plain plain a' 'write read a' 'read write a')
[ "${REDISSON_VERSION-}" = 3.13.6 ] || OUTLIVED+=('fair fair a')

# of_each FUNCTION ROW...: calls FUNCTION once for each row, with the words of the row.
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

@test "each stops waiting for the other side's lock when its wait time is over" {
	of_each each_gives_up "${ROWS[@]}"
}

@test "each acquires the lock after a holder of the other side was killed" {
	of_each rlock_outlives_java "${OUTLIVED[@]}"
	of_each java_outlives_rlock "${OUTLIVED[@]}"
}

@test "Java's watchdog and rlock's renewer each keep a lock for longer than its lease while the other side waits" {
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

@test "rlock waits until Java has released both holds of a re-entered lock" {
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

@test "Java waits until rlock has released both holds of a re-entered lock" {
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

@test "neither side can unlock the lock of the other one" {
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

@test "unlock --force breaks Java's lock, and wakes a waiting Java thread" {
	of_each rlock_breaks_javas 'plain plain' 'write read'
}

java_breaks_rlocks() {
	rlock_locks r "$1" a -t 3s
	java_does true T1 force "$1" a
	ended_with 76 "${PIDS[r]}"
	nothing_is_left
}

@test "Java's forceUnlock breaks rlock's lock, and rlock exits with 76" {
	of_each java_breaks_rlocks plain write read
}

@test "Java and rlock that name the same locks in different orders both acquire them" {
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
