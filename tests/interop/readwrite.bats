#!/usr/bin/env bats
# Read and write locks: a writer of either side is alone, whatever becomes of it; and what both sides write on the
# server. Several readers at a time are in readwrite_readers.bats.

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

@test "an rlock writer waits for a Java writer and is woken by its release" {
	rlock_is_woken write write a
}

@test "an rlock reader waits for a Java writer and is woken by its release" {
	rlock_is_woken write read a
}

@test "an rlock writer waits for a Java reader and is woken by its release" {
	rlock_is_woken read write a
}

@test "a Java writer waits for an rlock writer and is woken by its release" {
	java_is_woken write write a
}

@test "a Java reader waits for an rlock writer and is woken by its release" {
	java_is_woken write read a
}

@test "a Java writer waits for an rlock reader and is woken by its release" {
	java_is_woken read write a
}

@test "a Java reader is woken by the unlock of a script that was a writer" {
	java_is_woken_by_a_script write read a
}

@test "a Java writer is woken by the unlock of a script that was a reader" {
	java_is_woken_by_a_script read write a
}

@test "Java and rlock writers wake each other again and again" {
	both_are_woken_again_and_again write a
}

@test "an rlock writer gives up waiting for a Java writer when its time is over" {
	rlock_gives_up write write a
}

@test "an rlock reader gives up waiting for a Java writer when its time is over" {
	rlock_gives_up write read a
}

@test "an rlock writer gives up waiting for a Java reader when its time is over" {
	rlock_gives_up read write a
}

@test "a Java writer gives up waiting for an rlock writer when its time is over" {
	java_gives_up write write a
}

@test "a Java reader gives up waiting for an rlock writer when its time is over" {
	java_gives_up write read a
}

@test "a Java writer gives up waiting for an rlock reader when its time is over" {
	java_gives_up read write a
}

@test "neither can release a write lock of the other one" {
	neither_unlocks_the_others write a
}

@test "neither can release a read lock of the other one" {
	neither_unlocks_the_others read a
}

# ---- a holder dies ----

@test "an rlock reader gets in when a Java service with a writer was killed" {
	rlock_outlives_java write read a
}

@test "an rlock writer gets in when a Java service with a reader was killed" {
	rlock_outlives_java read write a
}

@test "a Java reader gets in when an rlock writer was killed" {
	java_outlives_rlock write read a
}

@test "a Java writer gets in when an rlock reader was killed" {
	java_outlives_rlock read write a
}

@test "a Java reader gets in when the lease of an rlock writer has ended" {
	java_outlives_a_lease_of_rlock write read a
}

@test "a Java writer gets in when the lease of an rlock reader has ended" {
	java_outlives_a_lease_of_rlock read write a
}

@test "an rlock reader gets in when the lease of a Java writer has ended" {
	rlock_outlives_a_lease_of_java write read a
}

@test "an rlock writer gets in when the lease of a Java reader has ended" {
	rlock_outlives_a_lease_of_java read write a
}

@test "the watchdog of a Java writer keeps an rlock reader out" {
	java_renews write read a
}

@test "the renewer of an rlock writer keeps a Java reader out" {
	rlock_renews write read a
}

@test "the watchdog of a Java reader keeps an rlock writer out" {
	java_renews read write a
}

@test "the renewer of an rlock reader keeps a Java writer out" {
	rlock_renews read write a
}

# ---- re-entering ----

@test "a Java writer re-enters while an rlock reader waits, and leaves twice" {
	java_enters_again write read a
}

@test "an rlock writer re-enters while a Java reader waits, and leaves twice" {
	rlock_enters_again write read a
}

@test "a Java reader re-enters while an rlock writer waits, and leaves twice" {
	java_enters_again read write a
}

@test "an rlock reader re-enters while a Java writer waits, and leaves twice" {
	rlock_enters_again read write a
}

# ---- breaking ----

@test "unlock --force ends a Java writer, and lets Java's readers in" {
	java_locks T1 write a
	java_begins T2 lock read a
	wait_until 5 has_waiter read a
	run -0 rlock unlock --force a
	took_less 2 java_enters T2
	java_does false T1 held write a
	java_unlocks T2 read a
	wait_until 5 is_free a
}

@test "Java's forceUnlock ends an rlock writer" {
	rlock_locks w write a -t 1s
	java_does true T1 force write a
	ended_with 76 "${PIDS[w]}"
	nothing_is_left
}

@test "Java's forceUnlock ends an rlock reader" {
	rlock_locks r read a -t 1s
	java_does true T1 force read a
	ended_with 76 "${PIDS[r]}"
	wait_until 5 is_free a
}

# ---- keys ----

@test "a writer of rlock's looks like one of Java's" {
	local owner
	owner=$(ask T1 owner)
	java_locks T1 write a
	keys_are a
	assert_equal "$(redis hgetall a | paste -sd ' ')" "mode write $owner:write 1"
	java_unlocks T1 write a
	rlock_locks w write a
	assert_equal "$(redis hgetall a | paste -sd ' ')" "mode write $(owner_of w):write 1"
	ttl_between 25000 a 30000
	assert_equal "$(redis keys '*' | grep -v rlock_)" a
	rlock_leaves w
	nothing_is_left
}

@test "a reader of rlock's looks like one of Java's" {
	local owner
	owner=$(ask T1 owner)
	java_locks T1 read a
	java_locks T1 read a
	keys_are a "{a}:$owner:rwlock_timeout:1" "{a}:$owner:rwlock_timeout:2"
	rlock_locks r read a
	assert_equal "$(redis hget a "$(owner_of r)")" 1
	assert_equal "$(redis hget a "$owner")" 2
	assert_equal "$(redis get "{a}:$(owner_of r):rwlock_timeout:1")" 1
	ttl_between 25000 "{a}:$(owner_of r):rwlock_timeout:1" 30000
	rlock_leaves r
	keys_are a "{a}:$owner:rwlock_timeout:1" "{a}:$owner:rwlock_timeout:2"
	java_unlocks T1 read a
	java_unlocks T1 read a
	nothing_is_left
}

@test "each entry of an rlock reader has a time of its own" {
	in_background rlock rlock a -- rlock rlock a -- stay r
	rlock_enters r
	redis exists "{a}:$(owner_of r):rwlock_timeout:1" "{a}:$(owner_of r):rwlock_timeout:2" >found
	assert_equal "$(cat found)" 2
	assert_equal "$(redis hget a "$(owner_of r)")" 2
	touch r.out
	ended_with 0
	nothing_is_left
}
