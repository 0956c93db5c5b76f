#!/usr/bin/env bats
# The keys of locks on the server, whichever side has acquired them.

load interop

# fields_are KEY WORD...: the hash must have exactly these fields and values, in this order.
fields_are() {
	assert_equal "$(redis hgetall "$1" | paste -s -d ' ')" "${*:2}"
}

@test "a lock that Java holds is one hash with the thread as its field, and a waiting rlock adds only rlock's queue" {
	local owner
	owner=$(ask T1 owner)
	rlock_queues plain plain a
	wait_until 5 keys_are a 'rlock_queue:{a}'
	fields_are a "$owner" 1
	ttl_between 25000 a 30000
	java_locks T1 plain a
	fields_are a "$owner" 2
	java_unlocks T1 plain a
	java_unlocks T1 plain a
	rlock_has_its_turn
}

@test "Java and rlock use the same keys for a name with braces, or with characters that are not ASCII" {
	local name
	for name in 'a{b}c' '{a}:b' 'a{b' '{}x' 'grün-日本'; do
		rlock_locks r plain "$name"
		java_does false T1 try plain "$name"
		java_begins T1 lock plain "$name"
		java_waits T1 100
		rlock_leaves r
		java_has_its_turn plain "$name"
	done
}

@test "rlock stores a write lock as Java does" {
	local owner
	owner=$(ask T1 owner)
	java_locks T1 write a
	keys_are a
	fields_are a mode write "$owner:write" 1
	java_unlocks T1 write a
	rlock_locks w write a
	fields_are a mode write "$(owner_of w):write" 1
	ttl_between 25000 a 30000
	assert_equal "$(redis keys '*' | grep -v rlock_)" a
	rlock_leaves w
	nothing_is_left
}

# Each hold of a reader has a timeout key of its own.
@test "rlock stores a read lock as Java does, with a timeout key for each hold" {
	local owner
	owner=$(ask T1 owner)
	java_locks T1 read a
	java_locks T1 read a
	keys_are a "{a}:$owner:rwlock_timeout:1" "{a}:$owner:rwlock_timeout:2"
	in_background rlock rlock a -- rlock rlock a -- stay r
	rlock_enters r
	assert_equal "$(redis hget a "$(owner_of r)")" 2
	assert_equal "$(redis hget a "$owner")" 2
	ttl_between 25000 "{a}:$(owner_of r):rwlock_timeout:1" 30000
	ttl_between 25000 "{a}:$(owner_of r):rwlock_timeout:2" 30000
	touch r.out
	ended_with 0
	keys_are a "{a}:$owner:rwlock_timeout:1" "{a}:$owner:rwlock_timeout:2"
	java_unlocks T1 read a
	java_unlocks T1 read a
	nothing_is_left
}

# waits_for NAME OWNER: prints in how many seconds the deadline of this waiter for a fair lock comes.
waits_for() {
	local score
	score=$(redis zscore "redisson_lock_timeout:{$1}" "$2")
	echo $(((${score%.*} - $(now_ms)) / 1000))
}

@test "rlock and Java store a waiter for a fair lock in Redisson's queue and in its set of deadlines" {
	local java rlock
	java_locks T1 fair a
	java_begins T2 lock fair a
	wait_until 20 has_queue_length a 1
	rlock_begins r fair a
	wait_until 20 has_queue_length a 2
	{ read -r java && read -r rlock; } < <(queue a)
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 2
	# The deadline is the end of the holder's lease of 30 s, plus the time that Redisson gives each thread, five minutes.
	assert_between 321 "$(waits_for a "$java")" 330
	(($(waits_for a "$rlock") > $(waits_for a "$java")))
	java_unlocks T1 fair a
	java_enters T2
	assert_equal "$(redis hkeys a)" "$java"
	assert_equal "$(queue a)" "$rlock"
	java_unlocks T2 fair a
	rlock_enters r
	fields_are a "$rlock" 1
	is_free 'redisson_lock_queue:{a}'
	is_free 'redisson_lock_timeout:{a}'
	rlock_leaves r
	nothing_is_left
}
