#!/usr/bin/env bats
# Java and rlock take turns, whatever the kind of lock: each is woken by the other one's release, gives up in time, survives the
# other one's death, renews, and re-enters. What is special about a kind is in a file of its own.

load interop
load turns

# The kinds that are held and wanted, and names: what takes another way through scripts and channels.
ROWS=('plain plain a' 'fair fair a' 'write read a' 'read write a' 'plain plain a,b')
WOKEN=("${ROWS[@]}" 'write write a' 'fair fair a,b' 'write write a,b')
# 3.13.6 has no RFencedLock.
[ "${REDISSON_VERSION-}" = 3.13.6 ] || WOKEN+=('fenced fenced a')
# RedissonFairLock of 3.13.6 asks when the lease that it first heard of is over. If the lock is not free at that instant it is
# told a negative time to wait, and sleeps until another waiter wakes it.
OUTLIVED=('plain plain a' 'write read a' 'read write a')
[ "${REDISSON_VERSION-}" = 3.13.6 ] || OUTLIVED+=('fair fair a')

# of_each FUNCTION ROW...
of_each() {
	local row
	for row in "${@:2}"; do
		# shellcheck disable=SC2086
		"$1" $row || {
			echo "so it was with: $row" >&2
			return 1
		}
	done
}

@test "rlock waits for Java's lock and is woken by its release" {
	of_each rlock_is_woken "${WOKEN[@]}"
}

@test "Java waits for rlock's lock and is woken by its release" {
	of_each java_is_woken "${WOKEN[@]}"
}

@test "Java is woken by the unlock of a script" {
	of_each java_is_woken_by_a_script "${ROWS[@]}"
}

@test "Java and rlock wake each other again and again" {
	of_each both_are_woken_again_and_again 'plain a' 'fair a' 'write a' 'plain a,b'
}

@test "each gives up waiting for the other one when its time is over" {
	of_each each_gives_up "${ROWS[@]}"
}

@test "neither can unlock what the other one holds" {
	of_each neither_unlocks_the_others 'plain a' 'fair a' 'write a' 'read a'
}

@test "rlock gets in when a Java service that held the lock was killed" {
	of_each rlock_outlives_java "${OUTLIVED[@]}"
}

@test "Java gets in when an rlock that held the lock was killed" {
	of_each java_outlives_rlock "${OUTLIVED[@]}"
}

@test "each gets in when a lease of the other one has ended" {
	of_each leases_end "${OUTLIVED[@]}"
}

@test "Java's watchdog keeps rlock out, and rlock's renewer Java" {
	of_each each_renews 'plain plain a' 'write read a' 'read write a'
}

@test "Java re-enters its lock while rlock waits, and leaves twice" {
	of_each java_enters_again "${ROWS[@]}"
}

@test "rlock re-enters its lock while Java waits, and leaves twice" {
	of_each rlock_enters_again "${ROWS[@]}"
}
