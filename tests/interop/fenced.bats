#!/usr/bin/env bats
# The fencing counter: the tokens of RFencedLock and of rlock --fence are one growing sequence.

load interop

setup() {
	[ "${REDISSON_VERSION-}" != 3.13.6 ] || skip "Redisson 3.13.6 has no RFencedLock"
	interop_setup
}

@test "tokens of Java and of rlock are one growing sequence, with a token for each acquisition and each re-entry" {
	for turn in 1 4; do
		java_does $turn T1 fence fenced a
		java_unlocks T1 fenced a
		run -0 rlock run --fence a -- sh -c 'echo "$RLOCK_TOKEN"; rlock run --fence a -- printenv RLOCK_TOKEN'
		assert_output $((turn + 1))$'\n'$((turn + 2))
	done
	# Once Java has created the counter, each acquisition of the lock is issued a token, even one without --fence.
	run -0 rlock run a -- true
	java_does 8 T1 fence fenced a
	java_does 9 T1 fence fenced a
	java_unlocks T1 fenced a
	java_unlocks T1 fenced a
	assert_equal "$(redis pttl 'redisson_lock_token:{a}')" -1
	nothing_is_left
}

@test "the token of a waiter is larger than that of the previous holder, and a failed attempt is issued none" {
	java_does 1 T1 fence fenced a
	rlock_is_refused fenced a
	rlock_is_refused fenced a -w 300ms
	in_background sh -c 'exec rlock run --fence a -- printenv RLOCK_TOKEN >token'
	wait_until 20 has_waiter fenced a
	java_unlocks T1 fenced a
	ended_with 0
	assert_equal "$(cat token)" 2
	rlock_locks r fenced a
	java_does false T1 try fenced a
	java_does false T1 try fenced a 300
	java_begins T1 fence fenced a
	wait_until 20 has_waiter fenced a
	rlock_leaves r
	java_does 4 await T1 10000
	java_unlocks T1 fenced a
	nothing_is_left
}

@test "unlock --force and Java's forceUnlock do not reset the counter" {
	java_does 1 T1 fence fenced a
	run -0 rlock unlock --force a
	rlock_locks r fenced a -t 3s
	assert_equal "$(redis get 'redisson_lock_token:{a}')" 2
	java_does true T1 force fenced a
	ended_with 76 "${PIDS[r]}"
	java_does 3 T1 fence fenced a
	java_unlocks T1 fenced a
	nothing_is_left
}
