#!/usr/bin/env bats
# bats file_tags=long
# rlock fair: first come, first served, in one queue with Java's threads. What stands on the server, a lock that is
# re-entered, and one of another kind. Whose turn it is: fair_order.bats; which release wakes a waiter: fair_woken.bats;
# which call is turned away, or leaves: fair_leaving.bats; without a command: fair_scripts.bats. What happens to the queue is in
# queue_*.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/clocks

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what stands on the server ----

@test "a fair lock looks like a plain one, and without waiters there is no line" {
	start_holder r1 fair a
	keys_are a 'rlock_holds:{a}'
	assert_equal "$(redis hvals a)" 1
	run -0 redis hkeys a
	assert_output --regexp '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+$'
	(($(redis pttl a) > 25000 && $(redis pttl a) <= 30000))
	let_leave r1
	nothing_is_left
}

@test "an undisturbed fair run makes one request to acquire the lock and one to release it" {
	run -0 rlock fair warm -- true
	redis config resetstat >/dev/null
	run -0 rlock fair a -- true
	assert_equal "$(redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p')" 2
	run -1 grep -cE '^cmdstat_(eval|subscribe):' < <(redis info commandstats)
}

@test "a waiter is in Redisson's list and set, with a sign of life beside them" {
	local owner ttl
	start_holder r0 fair a
	queue_waiter r1 a
	keys_are a 'rlock_holds:{a}' 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}' 'rlock_waiters:{a}'
	assert_equal "$(redis type 'redisson_lock_queue:{a}')" list
	assert_equal "$(redis type 'redisson_lock_timeout:{a}')" zset
	assert_equal "$(redis llen 'redisson_lock_queue:{a}')" 1
	owner=$(redis lindex 'redisson_lock_queue:{a}' 0)
	[[ $owner =~ ^[0-9a-f-]{36}:[0-9]+$ ]]
	assert_not_equal "$owner" "$(redis hkeys a)"
	assert_equal "$(redis zrange 'redisson_lock_timeout:{a}' 0 -1)" "$owner"
	assert_equal "$(redis hexists 'rlock_waiters:{a}' "$owner")" 1
	# Java gives these no time to live.
	lasts_a_day 'redisson_lock_queue:{a}'
	lasts_a_day 'redisson_lock_timeout:{a}'
	# Ours expires, but not before the position does.
	ttl=$(redis pttl 'rlock_waiters:{a}')
	((ttl >= $(ahead_ms a r1) && ttl < 3600000))
	assert_equal "$(redis pubsub channels)" "redisson_lock__channel:{a}:$owner"
	let_leave r0
	await_entry r1
	assert_equal "$(redis hkeys a)" "$owner"
	keys_are a 'rlock_holds:{a}'
	let_leave r1
	nothing_is_left
}

# lasts_a_day KEY: to within a minute.
lasts_a_day() {
	local ttl
	ttl=$(redis pttl "$1")
	((ttl > 86340000 && ttl <= 86400000))
}

@test "the queue and the deadlines of killed waiters last for a day, those that Java made too" {
	java_locks J1 a
	java_locks J2 a >/dev/null
	assert_equal "$(redis pttl 'redisson_lock_queue:{a}')" -1
	queue_waiter r1 a
	kill_waiter r1
	lasts_a_day 'redisson_lock_queue:{a}'
	lasts_a_day 'redisson_lock_timeout:{a}'
}

@test "a waiter whose queue was deleted acquires the lock, and leaves no key" {
	start_holder r0 fair a
	queue_waiter r1 a
	redis del 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}' >/dev/null
	let_leave r0
	await_entry r1
	let_leave r1
	nothing_is_left
}

@test "a queue and deadlines that last longer than a day keep their time to live" {
	java_locks J1 a
	java_locks J2 a >/dev/null
	redis pexpire 'redisson_lock_queue:{a}' 200000000 >/dev/null
	redis pexpire 'redisson_lock_timeout:{a}' 200000000 >/dev/null
	queue_waiter r1 a
	(($(redis pttl 'redisson_lock_queue:{a}') > 190000000))
	(($(redis pttl 'redisson_lock_timeout:{a}') > 190000000))
	java_gives_up J2 a
	java_unlocks J1 a >/dev/null
	await_entry r1
	let_leave r1
	nothing_is_left
}

# scores_are_ahead NAME...: by 300 s for its position and each one before it, and not by hours.
scores_are_ahead() {
	local party position=0 ahead
	for party; do
		((position += 1))
		ahead=$(ahead_ms a "$party")
		((ahead >= position * 300000 && ahead <= 30000 + (position + 1) * 300000)) || return
	done
}

@test "each waiter in the queue has a score, each 300 s further ahead than the one before" {
	start_holder r0 fair a
	for party in r1 r2 r3 r4 r5; do
		queue_waiter "$party" a
	done
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 5
	scores_are_ahead r1 r2 r3 r4 r5
	let_all_leave r0 r1 r2 r3 r4 r5
	nothing_is_left
}

@test "scores that fall behind are raised while they wait" {
	start_holder r0 fair a
	for party in r1 r2 r3; do
		queue_waiter "$party" a
	done
	# As Java's turns do it, and worse.
	set_deadline a r1 299000
	set_deadline a r2 1000
	set_deadline a r3 -1000
	wait_until 5 scores_are_ahead r1 r2 r3
	assert_equal "$(queue_names a)" 'r1 r2 r3'
	let_all_leave r0 r1 r2 r3
	nothing_is_left
}

@test "a waiter whose score has gone keeps its position" {
	start_holder r0 fair a
	queue_waiter r1 a
	queue_waiter r2 a
	redis del 'redisson_lock_timeout:{a}' >/dev/null
	run -75 rlock fair -n a -- true
	wait_until 5 scores_are_ahead r1 r2
	let_leave r0
	await_entry r1
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "a waiter that came after Java's threads has a score that bears their turns" {
	start_holder r0 fair a
	java_locks J1 a >/dev/null
	java_locks J2 a >/dev/null
	queue_waiter r1 a
	wait_until 5 scores_are_ahead J1 J2 r1
	java_gives_up J1 a
	java_gives_up J2 a
	let_all_leave r0 r1
	nothing_is_left
}

@test "scores are by the server's clock, whatever the waiter's says" {
	need_wrong_clocks
	start_holder r0 fair a
	clock_is_off 3600
	(($("${CLOCK[@]}" date +%s) - $(date +%s) >= 3599))
	queue_waiter r1 a
	clock_is_off -3600
	queue_waiter r2 a
	scores_are_ahead r1 r2
	set_deadline a r1 1000
	set_deadline a r2 1000
	wait_until 5 scores_are_ahead r1 r2
	let_leave r0
	await_entry r1
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "a release notifies the head of the queue on a channel of its own, and no other waiter in it" {
	local head
	start_holder r0 fair a
	queue_waiter r1 a
	queue_waiter r2 a
	queue_waiter r3 a
	head=$(owner_in_queue a r1)
	record_messages
	let_leave r0
	await_entry r1
	run -0 show_messages
	# The lock's own channel is for plain waiters.
	assert_equal "$(grep -vx 'redisson_lock__channel:{a} 0' <<<"$output" | sort -u)" "redisson_lock__channel:{a}:$head 0"
	let_all_leave r1 r2 r3
	nothing_is_left
}

@test "leaving a lock that is still held notifies no waiter" {
	in_background rlock fair a -- sh -c 'inside outer; rlock fair a -- inside nested; inside last'
	PIDS[r0]=$PID
	await_entry outer
	queue_waiter r1 a
	touch out-outer
	await_entry nested
	record_messages
	touch out-nested
	await_entry last
	assert_equal "$(show_messages)" ''
	touch out-last
	await_entry r1
	let_leave r1
	ended_with 0 "${PIDS[r0]}"
	nothing_is_left
}

@test "a name with braces goes into the names of the line as it is" {
	for name in 'a{b}c' '{a}:b' 'a{b' 'a}b' '{}x'; do
		rm -f in-* out-*
		start_holder r0 fair "$name"
		queue_waiter r1 "$name"
		keys_are "$name" "$(beside rlock_holds "$name")" "$(queue_key "$name")" "$(deadlines_key "$name")" \
			"$(waiters_key "$name")"
		wait_until 5 redis_says "$(channel "$name"):$(owner_in_queue "$name" r1)" pubsub channels
		is_woken_by "$name" r1 let_leave r0
		let_leave r1
		nothing_is_left
	done
}

@test "nothing is left when the line is empty again" {
	start_holder r0 fair a
	for party in r1 r2 r3; do
		queue_waiter "$party" a
	done
	let_leave r0
	for party in r1 r2 r3; do
		await_entry "$party"
		let_leave "$party"
	done
	nothing_is_left
	no_hold_files
}

# ---- re-entered ----

@test "fair in fair, plain in fair and fair in plain are one lock re-entered" {
	for verbs in 'fair fair' 'run fair' 'fair run'; do
		# shellcheck disable=SC2086
		set -- $verbs
		run -0 timeout 10 rlock "$1" a -- sh -c 'rlock '"$2"' -n a -- $REDIS hvals a; $REDIS hvals a'
		assert_output "2
1"
		no_keys
	done
}

@test "a lock is re-entered though others are in the queue" {
	in_background rlock fair a -- sh -c 'inside outer; rlock fair a -- inside nested'
	PIDS[r0]=$PID
	await_entry outer
	queue_waiter r1 a
	touch out-outer
	await_entry nested
	assert_equal "$(queue_names a)" r1
	assert_equal "$(redis hvals a)" 2
	is_waiting r1
	touch out-nested
	await_entry r1
	ended_with 0 "${PIDS[r0]}"
	let_leave r1
	nothing_is_left
}

@test "a script's fair lock is re-entered by what it starts, and left again" {
	run -0 bash -c '
		rlock fair --pid $$ a
		rlock fair --pid $$ a
		rlock fair a -- $REDIS hvals a
		rlock run a -- $REDIS hvals a
		rlock unlock a
		$REDIS hvals a
		rlock unlock a
		$REDIS exists a'
	assert_output "3
3
1
0"
	nothing_is_left
}

@test "commands side by side under another lock take turns in their order" {
	in_background rlock run other -- sh -c '
		rlock fair a -- inside x & comes_true "[ -s in-x ]"; rlock fair a -- inside y & wait'
	PIDS[r0]=$PID
	await_entry x
	wait_until 5 has_in_queue a 1
	assert [ ! -e in-y ]
	touch out-x
	await_entry y
	touch out-y
	ended_with 0 "${PIDS[r0]}"
	nothing_is_left
}

@test "a command is told that its lock is a fair one" {
	run -0 rlock fair a -- sh -c 'echo "$RLOCK_MODE $RLOCK_NAME"'
	assert_output 'fair a'
}

@test "a fair lock is issued fencing tokens, and a call that was turned away none" {
	run -0 rlock fair --fence a -- sh -c 'echo "$RLOCK_TOKEN"'
	assert_output 1
	start_holder r0 fair a --fence
	run -75 rlock fair --fence -n a -- true
	run -75 rlock fair --fence -w 50ms a -- true
	queue_passer r1 --fence a
	assert_equal "$(redis get 'redisson_lock_token:{a}')" 2
	let_leave r0
	ended_with 0 "${PIDS[r1]}"
	assert_equal "$(redis get 'redisson_lock_token:{a}')" 3
	keys_are 'redisson_lock_token:{a}'
}

# ---- locks of another kind ----

@test "a read or write lock of that name is refused, and left as it was" {
	local before
	for verb in wlock rlock; do
		rm -f in-r0 out-r0
		start_holder r0 "$verb" a
		before=$(show_contents)
		run -78 rlock fair a -- true
		assert_one_line '^rlock: a: .+$'
		run -78 rlock fair -n a -- true
		run -78 rlock fair -w 5s a -- true
		run -78 rlock fair --owner job-1 --lease 1m a
		assert_equal "$(show_contents)" "$before"
		let_leave r0
		nothing_is_left
	done
}

@test "a key that is no lock is refused, and left as it was" {
	redis set a x >/dev/null
	run -78 rlock fair a -- true
	assert_one_line '^rlock: a: .+$'
	run -78 rlock fair -n a -- true
	assert_equal "$(redis get a)" x
	keys_are a
}

@test "a fair lock is refused to readers and writers" {
	local before
	start_holder r0 fair a
	before=$(show_contents)
	run -78 rlock rlock -n a -- true
	run -78 rlock wlock -n a -- true
	assert_equal "$(show_contents)" "$before"
}

@test "a lock that turns into another kind is waited for no longer, and the line is left" {
	held_by_stranger a
	# shellcheck disable=SC2034 # start_waiter uses it
	STEPS=()
	queue_waiter r1 a
	redis set a x >/dev/null
	ended_with 78 "${PIDS[r1]}"
	has_lines said-r1 1
	keys_are a
}
