#!/usr/bin/env bats
# Several names at once: a MultiLock of Java's, and all names in one call of rlock's.

load interop
load turns

setup_file() {
	start_tcp_server
	start_common_java
}

teardown_file() {
	stop_java
	stop_server
}

setup() { interop_setup; }
teardown() { interop_teardown; }

# ---- taking turns ----

@test "rlock waits for Java's locks and is woken by their release" {
	rlock_is_woken plain plain a,b
}

@test "Java waits for rlock's locks and is woken by their release" {
	java_is_woken plain plain a,b
}

@test "Java is woken by the unlock of a script" {
	java_is_woken_by_a_script plain plain a,b
}

@test "Java and rlock wake each other again and again" {
	both_are_woken_again_and_again plain a,b
}

@test "rlock gives up waiting for Java when its time is over" {
	rlock_gives_up plain plain a,b
}

@test "Java gives up waiting for rlock when its time is over" {
	java_gives_up plain plain a,b
}

@test "neither can unlock what the other one holds" {
	neither_unlocks_the_others plain a,b
}

@test "rlock gets in when a Java service that held the locks was killed" {
	rlock_outlives_java plain plain a,b
}

@test "Java gets in when an rlock that held the locks was killed" {
	java_outlives_rlock plain plain a,b
}

@test "Java gets in when a lease of rlock's has ended" {
	java_outlives_a_lease_of_rlock plain plain a,b
}

@test "rlock gets in when a lease of Java's has ended" {
	rlock_outlives_a_lease_of_java plain plain a,b
}

@test "Java's watchdog keeps rlock out" {
	java_renews plain plain a,b
}

@test "rlock's renewer keeps Java out" {
	rlock_renews plain plain a,b
}

@test "Java re-enters its locks while rlock waits, and leaves twice" {
	java_enters_again plain plain a,b
}

@test "rlock re-enters its locks while Java waits, and leaves twice" {
	rlock_enters_again plain plain a,b
}

# ---- some of the names ----

@test "one name of Java's keeps rlock from both, and rlock leaves the other one free meanwhile" {
	java_locks T1 plain b
	rlock_begins r plain a,b
	wait_until 5 has_waiter plain b
	java_does true T2 try plain a
	is_free 'rlock_holds:{a}'
	java_unlocks T1 plain b
	stays 0.3 rlock_waits r
	java_unlocks T2 plain a
	took_less 2 rlock_enters r
	rlock_leaves r
	nothing_is_left
}

@test "one name of rlock's keeps Java from both" {
	rlock_locks r plain b
	java_does false T1 try plain a,b
	java_does false T1 try plain a,b 500
	is_free a
	java_begins T1 lock plain a,b
	wait_until 5 has_waiter plain b
	java_waits T1
	rlock_leaves r
	took_less 4 java_enters T1
	java_unlocks T1 plain a,b
	nothing_is_left
}

@test "single locks of Java's and several of rlock's keep each other out" {
	rlock_locks r plain a,b
	java_does false T1 try plain a
	java_does false T2 try plain b
	java_begins T1 lock plain a
	java_begins T2 lock plain b
	wait_until 5 has_waiter plain a
	wait_until 5 has_waiter plain b
	rlock_leaves r
	took_less 2 java_enters T1
	took_less 2 java_enters T2
	rlock_is_refused plain a,b
	java_unlocks T1 plain a
	rlock_is_refused plain a,b
	java_unlocks T2 plain b
	rlock_locks last plain a,b
	rlock_leaves last
	nothing_is_left
}

@test "Java and rlock that name the same locks in different orders both get in" {
	java_locks T1 plain c
	java_locks T2 plain a
	java_begins T3 lock plain a,b,c
	rlock_begins r plain c,b,a
	wait_until 5 has_waiter plain a
	wait_until 5 has_waiter plain c
	java_unlocks T1 plain c
	java_unlocks T2 plain a
	wait_until 15 each_had_it
	nothing_is_left
}

# The one that is in leaves.
declare -gA WENT=()
each_had_it() {
	if [ -z "${WENT[java]-}" ] && [ "$(ask await T3 0)" = ok ]; then
		WENT[java]=yes
		java_unlocks T3 plain a,b,c
	fi
	if [ -z "${WENT[rlock]-}" ] && [ -e r.in ]; then
		WENT[rlock]=yes
		rlock_leaves r
	fi
	[ ${#WENT[@]} -eq 2 ]
}

# ---- several names of another kind ----

@test "rlock waits for several fair locks of Java's and is woken by their release" {
	rlock_is_woken fair fair a,b
}

@test "Java waits for several fair locks of rlock's and is woken by their release" {
	java_is_woken fair fair a,b
}

@test "rlock gives up waiting for several fair locks, and is in no queue any more" {
	rlock_gives_up fair fair a,b
}

@test "an rlock that waits for several fair locks is in each of their queues" {
	java_locks T1 fair b
	rlock_begins r fair a,b
	wait_until 5 queue_length a 1
	wait_until 5 queue_length b 1
	assert_equal "$(queue a)" "$(queue b)"
	java_begins T2 lock fair b
	wait_until 5 queue_length b 2
	java_unlocks T1 fair b
	took_less 2 rlock_enters r
	java_waits T2
	rlock_leaves r
	took_less 2 java_enters T2
	java_unlocks T2 fair b
	nothing_is_left
}

@test "rlock waits for several write locks of Java's and is woken by their release" {
	rlock_is_woken write write a,b
}

@test "Java waits for several write locks of rlock's and is woken by their release" {
	java_is_woken write write a,b
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

@test "several locks of Java's and of rlock's are single ones, side by side" {
	local owner
	owner=$(ask T1 owner)
	java_locks T1 plain a,b
	keys_are a b
	assert_equal "$(redis hgetall a)" "$owner
1"
	assert_equal "$(redis hgetall b)" "$owner
1"
	java_unlocks T1 plain a,b
	rlock_locks r plain a,b
	keys_are a b 'rlock_holds:{a}' 'rlock_holds:{b}'
	ttl_between 25000 a 30000
	ttl_between 25000 b 30000
	assert_equal "$(redis hvals a)" 1
	assert_equal "$(redis hvals b)" 1
	rlock_leaves r
	nothing_is_left
}
