#!/usr/bin/env bats
# bats file_tags=long
# rlock fair: first come, first served, in one queue with Java's threads; which call is turned away or leaves, what wakes the
# head, and locks that are re-entered. What happens to the queue: queue.bats; whatever comes, goes and gives up: model.bats.

# PIDS is queue.bash's.
# shellcheck disable=SC2154

load ../lib/usual
load ../lib/queue

@test "an undisturbed fair run makes one request to acquire the lock and one to release it" {
	run -0 rlock fair warm -- true
	redis config resetstat >/dev/null
	run -0 rlock fair a -- true
	assert_equal "$(redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p')" 2
	run -1 grep -cE '^cmdstat_(eval|subscribe):' < <(redis info commandstats)
}

# ---- in order ----

# scores_are_ahead NAME...: by 300 s for its position and each one before it, and not by hours.
scores_are_ahead() {
	local party position=0 ahead
	for party; do
		((position += 1))
		ahead=$(ahead_ms a "$party")
		((ahead >= position * 300000 && ahead <= 30000 + (position + 1) * 300000)) || return
	done
}

@test "each waiter is notified and gets in when it is its turn, one at a time" {
	local -a all=()
	start_holder r0 fair a
	for number in {1..6}; do
		all+=("r$number")
		queue_waiter "r$number" a
	done
	assert_equal "$(queue_names a)" "${all[*]}"
	# As Redisson's.
	scores_are_ahead "${all[@]}"
	local head
	head=$(owner_in_queue a r1)
	record_messages
	let_leave r0
	await_entry r1
	run -0 show_messages
	# The lock's own channel is for plain waiters.
	assert_equal "$(grep -vx 'redisson_lock__channel:{a} 0' <<<"$output" | sort -u)" "redisson_lock__channel:{a}:$head 0"
	assert_equal "$(queue_names a)" "${all[*]:1}"
	take_turns "${all[@]}"
	kill "$PID"
	nothing_is_left
}

@test "rlock and Java's threads are in one queue, and its order is kept" {
	java_locks J1 a
	queue_waiter r1 a
	java_locks J2 a >/dev/null
	queue_waiter r2 a
	java_locks J3 a >/dev/null
	assert_equal "$(queue_names a)" 'r1 J2 r2 J3'
	record_messages
	is_woken_by a r1 java_unlocks J1 a
	let_leave r1
	show_messages | grep -qxF "$(channel a):$JAVA_CLIENT:2 0"
	is_waiting r2
	assert_equal "$(java_locks J2 a)" ''
	java_has_lock a J2
	assert_equal "$(java_unlocks J2 a)" 1
	await_entry r2
	assert_not_equal "$(java_locks J3 a)" ''
	let_leave r2
	assert_equal "$(java_locks J3 a)" ''
	assert_equal "$(java_unlocks J3 a)" 1
	for key in a 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}'; do
		is_free "$key"
	done
}

# ---- turned away, or leaving the queue ----

@test "a call does not pass the queue by, though the lock is free, and says for whose turn it is kept" {
	keep_head a
	run -75 rlock fair -n a -- true
	assert_output ''
	run -75 rlock fair -v -n a -- true
	assert_output --partial "kept for the next waiter, $JAVA_CLIENT:1"
	run -75 rlock fair -w 300ms a -- true
	assert_one_line "^rlock: a: timed out after 300ms: kept for the next waiter, $JAVA_CLIENT:1: give a longer --wait\$"
	assert_equal "$(queue_names a)" J1
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 1
	is_free a
}

@test "when the head leaves while the lock is free the next one is woken" {
	# r1 is next for "a", which is free, and does without it as long as it has not got "b".
	start_holder r0 fair b
	queue_waiter r1 a b
	queue_waiter r2 a
	assert_equal "$(queue_names a)" 'r1 r2'
	is_free a
	is_woken_by a r2 kill "${PIDS[r1]}"
	assert_equal "$(queue_names b)" ''
	let_leave r2
	let_leave r0
	nothing_is_left
}

# ---- woken by other locks' releases ----

@test "a plain release, and unlock --force, wake the head of the queue" {
	start_holder p0 run a
	queue_waiters r1 r2 r3
	is_woken_by a r1 let_leave p0
	is_waiting r2
	is_woken_by a r2 rlock unlock --force a
	is_waiting r3
	touch out-r1
	ended_with 76 "${PIDS[r1]}"
	take_turns r2 r3
	nothing_is_left
}

@test "a fair release wakes plain waiters too" {
	start_holder r0 fair a
	in_background rlock run a -- inside p1
	PIDS[p1]=$PID
	wait_until 5 has_waiters a
	let_leave r0
	wait_until 8 is_inside p1
	let_leave p1
	nothing_is_left
}

# ---- without a command ----

@test "two that wait for one owner are in the queue once, and each has a hold" {
	local first
	start_holder r0 fair a
	in_background rlock fair --owner job-1 --lease 1m a
	first=$PID
	wait_until 5 has_in_queue a 1
	in_background rlock fair --owner job-1 --lease 1m a
	wait_until 5 hears "$(channel a):$(redis lindex 'redisson_lock_queue:{a}' 0)" 2
	has_in_queue a 1
	queue_waiter r1 a
	let_leave r0
	ended_with 0 "$first"
	ended_with 0 "${BACKGROUND[2]}"
	has_count a 2
	is_waiting r1
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	await_entry r1
	let_leave r1
	nothing_is_left
}

# hears CHANNEL COUNT: so many listen there.
hears() {
	[ "$(redis pubsub numsub "$1" | tail -n 1)" = "$2" ]
}
