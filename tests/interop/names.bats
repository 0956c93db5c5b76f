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
	rlock_has_its_turn
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
	java_has_its_turn plain a,b
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
