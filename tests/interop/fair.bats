#!/usr/bin/env bats
# The fair lock: Java threads and rlock are in one queue, and enter in its order.

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

@test "rlock waits for Java's fair lock and is woken by its release" {
	rlock_is_woken fair fair a
}

@test "Java waits for rlock's fair lock and is woken by its release" {
	java_is_woken fair fair a
}

@test "Java is woken by the unlock of a script" {
	java_is_woken_by_a_script fair fair a
}

@test "Java and rlock wake each other again and again" {
	both_are_woken_again_and_again fair a
}

@test "rlock gives up waiting for Java when its time is over" {
	rlock_gives_up fair fair a
}

@test "Java gives up waiting for rlock when its time is over" {
	java_gives_up fair fair a
}

@test "neither can unlock what the other one holds" {
	neither_unlocks_the_others fair a
}

@test "rlock gets in when a Java service that held the lock was killed" {
	rlock_outlives_java fair fair a
}

# RedissonFairLock of 3.13.6 asks when the lease that it first heard of is over. If the lock is not free at that
# instant it is told a negative time to wait, and sleeps until another waiter wakes it.
sleeps_for_ever_in_old_versions() {
	[ "$REDISSON_VERSION" != 3.13.6 ] || skip "Redisson 3.13.6 may sleep through the end of a fair lock's lease"
}

@test "Java gets in when an rlock that held the lock was killed" {
	sleeps_for_ever_in_old_versions
	java_outlives_rlock fair fair a
}

@test "Java gets in when a lease of rlock's has ended" {
	sleeps_for_ever_in_old_versions
	java_outlives_a_lease_of_rlock fair fair a
}

@test "rlock gets in when a lease of Java's has ended" {
	rlock_outlives_a_lease_of_java fair fair a
}

@test "Java's watchdog keeps rlock out" {
	java_renews fair fair a
}

@test "rlock's renewer keeps Java out" {
	rlock_renews fair fair a
}

@test "Java re-enters its lock while rlock waits, and leaves twice" {
	java_enters_again fair fair a
}

@test "rlock re-enters its lock while Java waits, and leaves twice" {
	rlock_enters_again fair fair a
}

# ---- one queue ----

# begin_in_order PARTY...: each joins the queue before the next one comes. T1, T2... are threads of Java.
begin_in_order() {
	local party before
	for party; do
		before=$(redis llen "redisson_lock_queue:{a}")
		case $party in
		T*) java_begins "$party" lock fair a ;;
		*) rlock_begins "$party" fair a ;;
		esac
		wait_until 5 queue_length a $((before + 1))
	done
}

# enter_in_order PARTY...: each is let in promptly, and leaves, in this order; the others wait meanwhile.
enter_in_order() {
	local party
	while [ $# -gt 0 ]; do
		party=$1
		shift
		case $party in
		T*) took_less 2 java_enters "$party" ;;
		*) took_less 2 rlock_enters "$party" ;;
		esac
		all_wait "$@"
		case $party in
		T*) java_unlocks "$party" fair a ;;
		*) rlock_leaves "$party" ;;
		esac
	done
}

all_wait() {
	local party
	for party; do
		case $party in
		T*) java_waits "$party" ;;
		*) rlock_waits "$party" ;;
		esac
	done
}

@test "behind Java's hold, Java and rlock enter in the order in which they came" {
	java_locks T1 fair a
	begin_in_order T2 r1 T3 r2 r3 T4
	java_unlocks T1 fair a
	enter_in_order T2 r1 T3 r2 r3 T4
	nothing_is_left
}

@test "behind rlock's hold, rlock and Java enter in the order in which they came" {
	rlock_locks r0 fair a
	begin_in_order r1 T1 r2 T2 T3 r3
	rlock_leaves r0
	enter_in_order r1 T1 r2 T2 T3 r3
	nothing_is_left
}

@test "a waiter that has left and comes back is last in the queue" {
	java_locks T1 fair a
	begin_in_order r1 T2
	java_unlocks T1 fair a
	rlock_enters r1
	begin_in_order T1 r2
	rlock_leaves r1
	enter_in_order T2 T1 r2
	nothing_is_left
}

@test "Java does not pass an rlock that is first in the queue while the lock is free" {
	java_locks T1 fair a
	begin_in_order r1
	stop_waiters "${PIDS[r1]}"
	wait_until 5 is_stopped "$(renewer_of "${PIDS[r1]}")"
	java_unlocks T1 fair a
	wait_until 5 is_free a
	java_does false T2 try fair a
	java_does false T2 try fair a 300
	is_free a
	continue_waiters "${PIDS[r1]}"
	enter_in_order r1
	nothing_is_left
}

@test "rlock does not pass a Java thread that is first in the queue while the lock is free" {
	rlock_locks r0 fair a
	start_mortal_java
	begin_in_order T1
	kill -STOP "$(java_pid)"
	wait_until 5 is_stopped "$(java_pid)"
	rlock_leaves r0
	wait_until 5 is_free a
	rlock_is_refused fair a
	rlock_is_refused fair a -w 300ms
	is_free a
	kill -CONT "$(java_pid)"
	enter_in_order T1
	nothing_is_left
}

# ---- giving up ----

@test "a Java thread that gives up in the middle of the queue leaves the others where they were" {
	local before
	java_locks T1 fair a
	begin_in_order r1
	java_begins T2 try fair a 700
	wait_until 5 queue_length a 2
	begin_in_order r2 T3
	before=$(queue a)
	java_does false await T2 5000
	assert_equal "$(queue a)" "$(sed 2d <<<"$before")"
	java_unlocks T1 fair a
	enter_in_order r1 r2 T3
	nothing_is_left
}

@test "an rlock that gives up in the middle of the queue leaves the others where they were" {
	local before
	java_locks T1 fair a
	begin_in_order T2
	rlock_begins r1 fair a -w 1s
	wait_until 5 queue_length a 2
	begin_in_order T3 r2
	before=$(queue a)
	ended_with 75 "${PIDS[r1]}"
	assert_equal "$(queue a)" "$(sed 2d <<<"$before")"
	java_unlocks T1 fair a
	enter_in_order T2 T3 r2
	nothing_is_left
}

@test "an rlock that is stopped by SIGTERM while it is first in the queue leaves it to Java" {
	java_locks T1 fair a
	begin_in_order r1 T2
	kill -TERM "${PIDS[r1]}"
	ended_with 143 "${PIDS[r1]}"
	wait_until 5 queue_length a 1
	java_unlocks T1 fair a
	enter_in_order T2
	nothing_is_left
}

@test "a Java thread that gives up at the head leaves the turn to rlock" {
	rlock_locks r0 fair a
	java_begins T1 try fair a 500
	wait_until 5 queue_length a 1
	begin_in_order r1
	java_does false await T1 5000
	wait_until 5 queue_length a 1
	rlock_leaves r0
	enter_in_order r1
	nothing_is_left
}

# ---- live waiters stay in the queue ----

# Each Java thread that gets in takes its own waiting time, five minutes, off all that wait after it.
@test "an rlock keeps its position while many Java threads enter before it" {
	local owners
	java_locks T0 fair a
	begin_in_order T1 T2 T3 T4 T5 T6 r1 T7
	owners=$(queue a)
	java_unlocks T0 fair a
	for party in T1 T2 T3 T4 T5 T6; do
		java_enters $party
		owners=$(sed 1d <<<"$owners")
		# Each look drops those whose time is over.
		java_does false T8 try fair a
		rlock_is_refused fair a
		assert_equal "$(queue a)" "$owners"
		java_unlocks $party fair a
	done
	enter_in_order r1 T7
	nothing_is_left
}

@test "Java threads keep their positions while rlock enters before them, and others give up" {
	local owners
	rlock_locks r0 fair a
	begin_in_order r1 r2 r3
	java_begins T1 try fair a 20000
	wait_until 5 queue_length a 4
	begin_in_order T2 r4
	java_begins T3 try fair a 20000
	wait_until 5 queue_length a 7
	owners=$(queue a)
	rlock_is_refused fair a -w 100ms
	java_does false T4 try fair a 100
	assert_equal "$(queue a)" "$owners"
	rlock_leaves r0
	for party in r1 r2 r3; do
		took_less 2 rlock_enters $party
		owners=$(sed 1d <<<"$owners")
		rlock_is_refused fair a
		rlock_is_refused fair a -w 100ms
		java_does false T4 try fair a 100
		assert_equal "$(queue a)" "$owners"
		rlock_leaves $party
	done
	enter_in_order T1 T2 r4 T3
	nothing_is_left
}

@test "an rlock with little time to wait keeps its position for all of it" {
	java_locks T1 fair a
	rlock_begins r1 fair a -w 8s
	wait_until 5 queue_length a 1
	begin_in_order T2
	stays 6 waits_first r1
	java_unlocks T1 fair a
	enter_in_order r1 T2
	nothing_is_left
}

# waits_first PARTY: an rlock that waits, before others. Every look of Java's drops those whose time is over.
waits_first() {
	java_does false T9 try fair a && queue_length a 2 && rlock_waits "$1"
}

# ---- dead ones do not ----

@test "an rlock that was killed with its renewer at the head does not keep Java out for long when another rlock looks" {
	java_locks T1 fair a
	begin_in_order r1 T2 r2
	rlock_dies r1
	java_unlocks T1 fair a
	java_enters T2 7
	java_unlocks T2 fair a
	rlock_enters r2 2
	rlock_leaves r2
	nothing_is_left
}

@test "an rlock that was killed with its renewer some seconds ago is passed by the release of another rlock" {
	rlock_locks r0 fair a
	begin_in_order r1 T1
	rlock_dies r1
	let_pass 5
	rlock_leaves r0
	took_less 2 java_enters T1
	java_unlocks T1 fair a
	nothing_is_left
}

@test "an rlock that was killed with its renewer, alone in the queue, does not keep rlock or Java out" {
	java_locks T1 fair a
	begin_in_order r1
	rlock_dies r1
	rlock_begins r2 fair a
	wait_until 5 queue_length a 2
	java_unlocks T1 fair a
	rlock_enters r2 7
	rlock_leaves r2
	java_does true T1 try fair a
	java_unlocks T1 fair a
	nothing_is_left
}

# A dead Java thread is known by the end of the time that it said it would wait, and by that only.
@test "a Java service that was killed in the queue is passed when the time of its waiting is over" {
	rlock_locks r0 fair a -t 3s
	start_mortal_java
	java_begins T1 try fair a 1000
	wait_until 5 queue_length a 1
	java_dies
	begin_in_order r1
	queue_length a 2
	rlock_leaves r0
	rlock_enters r1 7
	rlock_leaves r1
	nothing_is_left
}

@test "a Java service that is killed while it holds leaves the queue as it is" {
	start_mortal_java
	java_locks T1 fair a
	speak_to java
	begin_in_order r1 T2 r2
	speak_to mortal
	java_dies
	speak_to java
	rlock_enters r1 6
	all_wait T2 r2
	rlock_leaves r1
	enter_in_order T2 r2
	nothing_is_left
}

# ---- keys ----

# waits_for NAME OWNER: the time until which that one is known to wait, from now, in seconds.
waits_for() {
	local score
	score=$(redis zscore "redisson_lock_timeout:{$1}" "$2")
	echo $(((${score%.*} - $(now_ms)) / 1000))
}

@test "a waiter is in Redisson's list and set of times, rlock as Java" {
	local owners java rlock
	java_locks T1 fair a
	begin_in_order T2 r1
	mapfile -t owners < <(queue a)
	java=${owners[0]} rlock=${owners[1]}
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 2
	# The lease, and five minutes.
	(($(waits_for a "$java") > 320 && $(waits_for a "$java") <= 330))
	(($(waits_for a "$rlock") > $(waits_for a "$java")))
	java_unlocks T1 fair a
	java_enters T2
	assert_equal "$(redis hkeys a)" "$java"
	assert_equal "$(queue a)" "$rlock"
	java_unlocks T2 fair a
	rlock_enters r1
	assert_equal "$(owner_of r1)" "$rlock"
	assert_equal "$(redis hgetall a)" "$rlock
1"
	ttl_between 25000 a 30000
	is_free 'redisson_lock_queue:{a}'
	is_free 'redisson_lock_timeout:{a}'
	rlock_leaves r1
	nothing_is_left
}

@test "rlock's release notifies the Java thread that is next, and no other one in the queue" {
	local owner
	owner=$(ask T1 owner)
	rlock_locks r0 fair a
	# shellcheck disable=SC2016
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" monitor >seen'
	wait_until 5 grep -qs OK seen
	begin_in_order T1 T2 r1
	rlock_leaves r0
	java_enters T1
	run -0 sed -n 's/.*\] "publish" //Ip' seen
	assert_line "\"redisson_lock__channel:{a}:$owner\" \"0\""
	run -1 grep -vFx -e "\"redisson_lock__channel:{a}:$owner\" \"0\"" -e '"redisson_lock__channel:{a}" "0"' \
		<<<"$output"
	java_unlocks T1 fair a
	enter_in_order T2 r1
	nothing_is_left
}
