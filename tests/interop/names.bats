#!/usr/bin/env bats
# Several names at once: a MultiLock of Java's, and all names in one call of rlock's.

load interop

@test "one name of Java's keeps rlock from both, and rlock leaves the other one free meanwhile" {
	java_locks T1 plain b
	rlock_begins r plain a,b
	wait_until 20 has_waiter plain b
	java_does true T2 try plain a
	is_free 'rlock_holds:{a}'
	java_unlocks T1 plain b
	stays 0.3 rlock_waits r
	java_unlocks T2 plain a
	took_less 4 rlock_enters r
	rlock_leaves r
	nothing_is_left
}

@test "one name of rlock's keeps Java from both" {
	rlock_locks r plain b
	java_does false T1 try plain a,b
	java_does false T1 try plain a,b 500
	is_free a
	java_begins T1 lock plain a,b
	wait_until 20 has_waiter plain b
	java_waits T1
	rlock_leaves r
	took_less 4 java_enters T1
	java_unlocks T1 plain a,b
	nothing_is_left
}

@test "Java and rlock that name the same locks in different orders both get in" {
	java_locks T1 plain c
	java_locks T2 plain a
	java_begins T3 lock plain a,b,c
	rlock_begins r plain c,b,a
	wait_until 20 has_waiter plain a
	wait_until 20 has_waiter plain c
	java_unlocks T1 plain c
	java_unlocks T2 plain a
	wait_until 25 each_had_it 2 T3:plain:a,b,c r:plain:c,b,a
	nothing_is_left
}

# ---- several names of another kind ----

@test "an rlock that waits for several fair locks is in each of their queues" {
	java_locks T1 fair b
	rlock_begins r fair a,b
	wait_until 20 queue_length a 1
	wait_until 20 queue_length b 1
	assert_equal "$(queue a)" "$(queue b)"
	java_begins T2 lock fair b
	wait_until 20 queue_length b 2
	java_unlocks T1 fair b
	took_less 4 rlock_enters r
	java_waits T2
	rlock_leaves r
	took_less 4 java_enters T2
	java_unlocks T2 fair b
	nothing_is_left
}

@test "readers of several names share them" {
	java_locks T1 read a,b
	rlock_locks r read a,b
	java_does false T2 try write b
	java_does false T2 try write a
	java_unlocks T1 read a,b
	java_does false T2 try write b
	rlock_leaves r
	java_does true T2 try write a,b
	rlock_is_refused read b
	java_unlocks T2 write a,b
	nothing_is_left
}

# ---- keys ----
