#!/usr/bin/env bats
# The fair lock: Java threads and rlock are in one queue, and enter in its order.

load interop

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
		wait_until 20 queue_length a $((before + 1))
	done
}

# enter_in_order PARTY...: each is let in promptly, and leaves, in this order; the others wait meanwhile.
enter_in_order() {
	local party
	while [ $# -gt 0 ]; do
		party=$1
		shift
		case $party in
		T*) took_less 4 java_enters "$party" ;;
		*) took_less 4 rlock_enters "$party" ;;
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

# ---- giving up ----

@test "a Java thread that gives up in the middle of the queue leaves the others where they were" {
	local before
	java_locks T1 fair a
	begin_in_order r1
	java_begins T2 try fair a 8000
	wait_until 20 queue_length a 2
	begin_in_order r2 T3
	before=$(queue a)
	java_does false await T2 20000
	assert_equal "$(queue a)" "$(sed 2d <<<"$before")"
	java_unlocks T1 fair a
	enter_in_order r1 r2 T3
	nothing_is_left
}

@test "an rlock that is stopped by SIGTERM while it is first in the queue leaves it to Java" {
	java_locks T1 fair a
	begin_in_order r1 T2
	kill -TERM "${PIDS[r1]}"
	ended_with 143 "${PIDS[r1]}"
	wait_until 20 queue_length a 1
	java_unlocks T1 fair a
	enter_in_order T2
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

# ---- dead ones do not ----

@test "an rlock that was killed with its renewer at the head does not keep Java out for long when another rlock looks" {
	java_locks T1 fair a
	begin_in_order r1 T2 r2
	rlock_dies r1
	java_unlocks T1 fair a
	java_enters T2 15
	java_unlocks T2 fair a
	rlock_enters r2
	rlock_leaves r2
	nothing_is_left
}

# A dead Java thread is known by the end of the time that it said it would wait, and by that only.
@test "a Java service that was killed in the queue is passed when the time of its waiting is over" {
	rlock_locks r0 fair a -t 3s
	start_mortal_java
	java_begins T1 try fair a 8000
	wait_until 20 queue_length a 1
	java_dies
	begin_in_order r1
	queue_length a 2
	rlock_leaves r0
	rlock_enters r1 25
	rlock_leaves r1
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
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" monitor >seen'
	wait_until 20 grep -qs OK seen
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
