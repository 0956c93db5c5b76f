#!/usr/bin/env bats
# The plain lock: several that wait, locks that are broken, and what a lock looks like on the server.

load interop

@test "a release wakes one of several that wait on both sides, and each gets its turn" {
	java_locks T1 plain a
	java_begins T2 lock plain a
	java_begins T3 lock plain a
	rlock_begins r1 plain a
	rlock_begins r2 plain a
	wait_until 20 has_waiter plain a 3
	java_unlocks T1 plain a
	# There is no order among them.
	wait_until 25 each_had_it 4 T2:plain:a T3:plain:a r1:plain:a r2:plain:a
	nothing_is_left
}

# ---- breaking ----

@test "Java's forceUnlock ends a hold of rlock's" {
	rlock_locks r plain a -t 1s
	java_does true T1 force plain a
	java_locks T1 plain a
	ended_with 76 "${PIDS[r]}"
	java_does true T1 held plain a
	java_unlocks T1 plain a
	nothing_is_left
}

@test "unlock --force takes Java's lock from it, and wakes Java's next" {
	java_locks T1 plain a
	java_begins T2 lock plain a
	wait_until 20 has_waiter plain a
	run -0 rlock unlock --force a
	took_less 4 java_enters T2
	java_does false T1 held plain a
	java_unlocks T2 plain a
	nothing_is_left
}

@test "unlock --force --holder breaks the lock of that Java thread only" {
	local owner
	owner=$(ask T1 owner)
	java_locks T2 plain a
	run -1 rlock unlock --force --holder "$owner" a
	java_does true T2 held plain a
	java_unlocks T2 plain a
	java_locks T1 plain a
	run -0 rlock unlock --force --holder "$owner" a
	java_does false T1 locked plain a
	nothing_is_left
}

# ---- keys ----

@test "a lock that Java holds is one hash of its thread, and rlock's wait adds nothing but its queue" {
	local owner
	owner=$(ask T1 owner)
	java_locks T1 plain a
	rlock_begins r plain a
	wait_until 20 has_waiter plain a
	wait_until 2 keys_are a 'rlock_queue:{a}'
	assert_equal "$(redis hgetall a)" "$owner
1"
	ttl_between 25000 a 30000
	java_locks T1 plain a
	assert_equal "$(redis hgetall a)" "$owner
2"
	java_unlocks T1 plain a
	java_unlocks T1 plain a
	rlock_enters r
	rlock_leaves r
	nothing_is_left
}

@test "a lock that rlock holds looks to Java as if Java held it" {
	rlock_locks r plain a
	keys_are a 'rlock_holds:{a}'
	assert_equal "$(redis hgetall a)" "$(owner_of r)
1"
	ttl_between 25000 a 30000
	java_does true T1 locked plain a
	java_does false T1 held plain a
	rlock_leaves r
	java_does false T1 locked plain a
	nothing_is_left
}

@test "Java and rlock know a name with braces by the same keys" {
	for name in 'a{b}c' '{a}:b' 'a{b' '{}x'; do
		java_locks T1 plain "$name"
		rlock_begins "r$name" plain "$name"
		wait_until 20 listened_to "redisson_lock__channel:$name"
		java_unlocks T1 plain "$name"
		took_less 4 rlock_enters "r$name"
		rlock_leaves "r$name"
	done
	nothing_is_left
}

listened_to() {
	[ "$(redis pubsub numsub "$1" | tail -n 1)" -ge 1 ]
}

@test "Java and rlock know a name that is not ASCII by the same key" {
	rlock_locks r plain 'grün-日本'
	java_does false T1 try plain 'grün-日本'
	java_does true T1 locked plain 'grün-日本'
	rlock_leaves r
	nothing_is_left
}
