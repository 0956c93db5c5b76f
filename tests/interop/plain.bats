#!/usr/bin/env bats
# The plain lock: a Java service that uses RLock, and rlock, take turns.

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

@test "rlock waits for Java's lock and is woken by its release" {
	rlock_is_woken plain plain a
}

@test "Java waits for rlock's lock and is woken by its release" {
	java_is_woken plain plain a
}

@test "Java is woken by the unlock of a script" {
	java_is_woken_by_a_script plain plain a
}

@test "Java and rlock wake each other again and again" {
	both_are_woken_again_and_again plain a
}

@test "rlock gives up waiting for Java when its time is over" {
	rlock_gives_up plain plain a
}

@test "Java gives up waiting for rlock when its time is over" {
	java_gives_up plain plain a
}

@test "neither can unlock what the other one holds" {
	neither_unlocks_the_others plain a
}

@test "a release wakes one of several that wait on both sides, and each gets its turn" {
	java_locks T1 plain a
	java_begins T2 lock plain a
	java_begins T3 lock plain a
	rlock_begins r1 plain a
	rlock_begins r2 plain a
	wait_until 5 has_waiter plain a 3
	java_unlocks T1 plain a
	# There is no order among them.
	wait_until 10 each_had_it
	nothing_is_left
}

# The one that is in leaves. What is done is recorded in WENT.
declare -gA WENT=()
each_had_it() {
	local party
	for party in T2 T3; do
		if [ -z "${WENT[$party]-}" ] && [ "$(ask await $party 0)" = ok ]; then
			WENT[$party]=yes
			java_unlocks $party plain a
		fi
	done
	for party in r1 r2; do
		if [ -z "${WENT[$party]-}" ] && [ -e "$party.in" ]; then
			WENT[$party]=yes
			rlock_leaves $party
		fi
	done
	[ ${#WENT[@]} -eq 4 ]
}

# ---- a holder dies ----

@test "rlock gets in when a Java service that held the lock was killed" {
	rlock_outlives_java plain plain a
}

@test "Java gets in when an rlock that held the lock was killed" {
	java_outlives_rlock plain plain a
}

@test "Java gets in when a lease of rlock's has ended" {
	java_outlives_a_lease_of_rlock plain plain a
}

@test "rlock gets in when a lease of Java's has ended" {
	rlock_outlives_a_lease_of_java plain plain a
}

@test "Java's watchdog keeps rlock out" {
	java_renews plain plain a
}

@test "rlock's renewer keeps Java out" {
	rlock_renews plain plain a
}

@test "Java's release wakes no waiter into a lock that another rlock has acquired meanwhile" {
	java_locks T1 plain a
	rlock_begins r1 plain a
	rlock_begins r2 plain a
	wait_until 5 has_waiter plain a 2
	java_unlocks T1 plain a
	wait_until 2 one_is_in
	stays 0.5 one_is_in
	for party in r1 r2; do
		touch $party.out
	done
	ended_with 0 "${PIDS[r1]}"
	ended_with 0 "${PIDS[r2]}"
	nothing_is_left
}

one_is_in() {
	[ "$(find . -maxdepth 1 -name 'r[12].in' | wc -l)" = 1 ]
}

# ---- re-entering ----

@test "Java re-enters its lock while rlock waits, and leaves twice" {
	java_enters_again plain plain a
}

@test "rlock re-enters its lock while Java waits, and leaves twice" {
	rlock_enters_again plain plain a
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
	wait_until 5 has_waiter plain a
	run -0 rlock unlock --force a
	took_less 2 java_enters T2
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
	wait_until 5 has_waiter plain a
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
		wait_until 5 listened_to "redisson_lock__channel:$name"
		java_unlocks T1 plain "$name"
		took_less 2 rlock_enters "r$name"
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
