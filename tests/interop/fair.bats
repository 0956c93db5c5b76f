#!/usr/bin/env bats
# The fair lock: Java threads and rlock wait in one queue, and enter in its order.

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

# enter_in_order CONTENDER...: checks that the contenders acquire the lock promptly and in this order, while the later ones wait.
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

@test "Java and rlock enter in the order in which they came, behind a hold of Java's and behind one of rlock's" {
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

@test "rlock does not pass a Java thread that is first in the queue while the lock is free" {
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

@test "a Java thread that gives up in the middle of the queue leaves the others where they were" {
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

# Each Java thread that enters lowers the deadlines of all waiters after it by five minutes, its own waiting time.
@test "an rlock keeps its position while many Java threads enter before it" {
	local owners
	java_locks T0 fair a
	begin_in_order T1 T2 T3 T4 T5 T6 r1 T7
	owners=$(queue a)
	java_unlocks T0 fair a
	for contender in T1 T2 T3 T4 T5 T6; do
		java_enters $contender
		owners=$(sed 1d <<<"$owners")
		# Each attempt removes waiters whose deadline has passed.
		java_does false T8 try fair a
		rlock_is_refused fair a
		assert_equal "$(queue a)" "$owners"
		java_unlocks $contender fair a
	done
	enter_in_order r1 T7
	nothing_is_left
}

@test "an rlock that was killed with its renewer at the head does not keep Java out for long when another rlock looks" {
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

# Only the deadline of a dead Java thread, the end of its waiting time, tells that it is dead.
@test "a Java service that was killed in the queue is passed when the time of its waiting is over" {
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
