#!/usr/bin/env bats
# The fair lock: Java threads and rlock wait in one queue, and acquire the lock in its order.

load interop

# begin_in_order CONTENDER...: starts the contenders. Each joins the queue before the next one starts. T1, T2... are Java threads.
begin_in_order() {
	local contender before
	for contender; do
		before=$(redis llen 'redisson_lock_queue:{a}')
		case $contender in
		T*) java_begins "$contender" lock fair a ;;
		*) rlock_begins "$contender" fair a ;;
		esac
		wait_until 20 has_queue_length a $((before + 1))
	done
}

# enter_in_order CONTENDER...: the contenders must acquire the lock in this order, each within 4 s, while the later ones still
# wait.
enter_in_order() {
	local contender other
	while [ $# -gt 0 ]; do
		contender=$1
		shift
		case $contender in
		T*) takes_less_than 4 java_enters "$contender" ;;
		*) takes_less_than 4 rlock_enters "$contender" ;;
		esac
		for other; do
			case $other in
			T*) java_waits "$other" ;;
			*) rlock_waits "$other" ;;
			esac
		done
		case $contender in
		T*) java_unlocks "$contender" fair a ;;
		*) rlock_leaves "$contender" ;;
		esac
	done
}

@test "Java and rlock acquire the lock in the order in which they came, whichever side held it before" {
	java_locks T1 fair a
	begin_in_order T2 r1 T3 r2 r3 T4
	java_unlocks T1 fair a
	enter_in_order T2 r1 T3 r2 r3 T4
	rlock_locks r0 fair a
	begin_in_order r1 T1 r2 T2 T3 r3
	rlock_leaves r0
	enter_in_order r1 T1 r2 T2 T3 r3
	nothing_is_left
}

@test "rlock does not overtake a Java thread at the head of the queue, although the lock is free" {
	rlock_locks r0 fair a
	start_mortal_java
	begin_in_order T1
	kill -STOP "$(java_pid)"
	wait_until 20 is_stopped "$(java_pid)"
	rlock_leaves r0
	wait_until 20 is_free a
	rlock_is_refused fair a
	rlock_is_refused fair a -w 300ms
	is_free a
	kill -CONT "$(java_pid)"
	enter_in_order T1
	nothing_is_left
}

@test "the queue keeps its order when a Java thread in the middle stops waiting" {
	local before
	java_locks T1 fair a
	begin_in_order r1
	java_begins T2 try fair a 8000
	wait_until 20 has_queue_length a 2
	begin_in_order r2 T3
	before=$(queue a)
	java_does false await T2 20000
	assert_equal "$(queue a)" "$(sed 2d <<<"$before")"
	java_unlocks T1 fair a
	enter_in_order r1 r2 T3
	nothing_is_left
}

# A Java thread that acquires the lock lowers the deadlines of all waiters after it by five minutes, the wait time of a thread. If
# rlock did not raise the deadline of its waiter again, Java would remove that waiter from the queue.
@test "an rlock keeps its position while many Java threads acquire the lock before it" {
	local owners
	java_locks T0 fair a
	begin_in_order T1 T2 T3 T4 T5 T6 r1 T7
	owners=$(queue a)
	java_unlocks T0 fair a
	for contender in T1 T2 T3 T4 T5 T6; do
		java_enters $contender
		owners=$(sed 1d <<<"$owners")
		# Each attempt of Java or rlock removes waiters that it considers dead; the live ones must remain.
		java_does false T8 try fair a
		rlock_is_refused fair a
		assert_equal "$(queue a)" "$owners"
		java_unlocks $contender fair a
	done
	enter_in_order r1 T7
	nothing_is_left
}

@test "a killed rlock at the head of the queue delays Java only for seconds if another rlock is queued" {
	java_locks T1 fair a
	begin_in_order r1 T2 r2
	kill_whole "${PIDS[r1]}"
	java_unlocks T1 fair a
	java_enters T2 15
	java_unlocks T2 fair a
	rlock_enters r2
	rlock_leaves r2
	nothing_is_left
}

# Java would remove a dead thread from the queue at its deadline, the end of its wait time. rlock can remove it sooner, since the
# thread is no longer subscribed.
@test "a queued Java thread whose service was killed is overtaken, at the latest when its deadline has passed" {
	rlock_locks r0 fair a -t 3s
	start_mortal_java
	java_begins T1 try fair a 8000
	wait_until 20 has_queue_length a 1
	java_dies
	begin_in_order r1
	rlock_leaves r0
	rlock_enters r1
	rlock_leaves r1
	nothing_is_left
}
