#!/usr/bin/env bats
# bats file_tags=long
# rlock fair: first come, first served, in one queue with Java's threads. What stands on the server,
# which call may enter, which is turned away, and which is woken. What befalls the queue is in line_*.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is line.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/line
load ../lib/clocks

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { watchful_teardown; }

# ---- what the tests share ----

# keys_are KEY...: these are on the server, and no others.
keys_are() {
	assert_equal "$(redis keys '*' | sort)" "$(printf '%s\n' "$@" | sort)"
}

# What all keys contain, but for their times to live.
contents() {
	redis eval '
		local keys, found = redis.call("KEYS", "*"), {}
		table.sort(keys)
		for i, key in ipairs(keys) do
			found[i] = key .. " " .. redis.sha1hex(redis.call("DUMP", key))
		end
		return found' 0
}

# keep_head NAME [AHEAD_MS]: a thread of Java's, J1, is next in line for the lock, which is free.
keep_head() {
	redis rpush "$(queue_key "$1")" "$JAVA_CLIENT:1" >/dev/null
	set_deadline "$1" J1 "${2:-60000}"
}

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
	local who place=0 ahead
	for who; do
		((place += 1))
		ahead=$(ahead_ms a "$who")
		((ahead >= place * 300000 && ahead <= 30000 + (place + 1) * 300000)) || return
	done
}

@test "everyone in line has a score, each 300 s further ahead than the one before" {
	start_holder r0 fair a
	for who in r1 r2 r3 r4 r5; do
		queue_waiter "$who" a
	done
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 5
	scores_are_ahead r1 r2 r3 r4 r5
	let_all_leave r0 r1 r2 r3 r4 r5
	nothing_is_left
}

@test "scores that fall behind are raised while they wait" {
	start_holder r0 fair a
	for who in r1 r2 r3; do
		queue_waiter "$who" a
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

@test "a release is told to the head of the line on a channel of its own, and to no other one in it" {
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
		assert_equal "$(redis pubsub channels)" "$(channel "$name"):$(owner_in_queue "$name" r1)"
		is_woken_by "$name" r1 let_leave r0
		let_leave r1
		nothing_is_left
	done
}

@test "nothing is left when the line is empty again" {
	start_holder r0 fair a
	for who in r1 r2 r3; do
		queue_waiter "$who" a
	done
	let_leave r0
	for who in r1 r2 r3; do
		await_entry "$who"
		let_leave "$who"
	done
	nothing_is_left
	no_state_files
}

# ---- in order ----

@test "of fifteen waiters each one gets in when it is its turn, one at a time" {
	local -a all=()
	start_holder r0 fair a
	for number in {1..15}; do
		all+=("r$number")
		queue_waiter "r$number" a
	done
	assert_equal "$(queue_names a)" "${all[*]}"
	let_leave r0
	while [ ${#all[@]} -gt 0 ]; do
		await_entry "${all[0]}"
		assert_equal "$(queue_names a)" "${all[*]:1}"
		for who in "${all[@]:1}"; do
			is_waiting "$who"
		done
		let_leave "${all[0]}"
		all=("${all[@]:1}")
	done
	nothing_is_left
}

@test "rlock and Java's threads stand in one line, and its order is kept" {
	java_locks J1 a
	queue_waiter r1 a
	java_locks J2 a >/dev/null
	java_locks J3 a >/dev/null
	queue_waiter r2 a
	queue_waiter r3 a
	java_locks J4 a >/dev/null
	assert_equal "$(queue_names a)" 'r1 J2 J3 r2 r3 J4'
	record_messages
	assert_equal "$(java_unlocks J1 a)" 1
	await_entry r1
	let_leave r1
	for who in J2 J3; do
		show_messages | grep -qxF "$(channel a):$JAVA_CLIENT:${who#J} 0"
		is_waiting r2
		assert_equal "$(java_locks "$who" a)" ''
		java_has_lock a "$who"
		assert_equal "$(java_unlocks "$who" a)" 1
	done
	await_entry r2
	is_waiting r3
	assert_not_equal "$(java_locks J4 a)" ''
	let_leave r2
	await_entry r3
	let_leave r3
	assert_equal "$(java_locks J4 a)" ''
	assert_equal "$(java_unlocks J4 a)" 1
	for key in a 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}'; do
		is_free "$key"
	done
}

@test "when the last rlock has left the queue, only what is Java's stays on the server" {
	java_locks J1 a
	queue_waiter r1 a
	java_locks J2 a >/dev/null
	java_unlocks J1 a >/dev/null
	await_entry r1
	let_leave r1
	keys_are 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}'
	assert_equal "$(java_locks J2 a)" ''
	java_unlocks J2 a >/dev/null
	no_keys
}

@test "Java's release wakes the rlock that is next" {
	java_locks J1 a
	queue_waiter r1 a
	queue_waiter r2 a
	is_woken_by a r1 java_unlocks J1 a
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "a thread of Java's that is next holds the line up until its time is over" {
	keep_head a
	queue_waiter r1 a
	queue_waiter r2 a
	stays 2.2 is_waiting r1
	assert_equal "$(queue_names a)" 'J1 r1 r2'
	set_deadline a J1 3000
	stays 0.8 is_waiting r1
	await_entry r1 8
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "a thread of Java's that is next is let in before those that came later" {
	keep_head a
	queue_waiter r1 a
	assert_equal "$(java_locks J1 a)" ''
	is_waiting r1
	is_woken_by a r1 java_unlocks J1 a
	let_leave r1
	nothing_is_left
}

@test "a head whose time is over does not keep others out" {
	keep_head a -1
	run -0 rlock fair -n a -- true
	no_keys
}

@test "a thread of Java's that listens keeps its position though its time is over, and is woken" {
	keep_head a -1000
	java_listens a J1
	record_messages
	run -75 rlock fair -n a -- true
	assert_equal "$(queue_names a)" J1
	show_messages | grep -qxF "$(channel a):$JAVA_CLIENT:1 0"
	queue_waiter r1 a
	# Its clock is slow: it does not know that its time is over.
	assert_equal "$(java_locks J1 a -5000)" ''
	java_has_lock a J1
	is_woken_by a r1 java_unlocks J1 a
	let_leave r1
	is_free "$(queue_key a)"
}

@test "a thread of Java's whose time is over holds no waiter up when it listens no longer" {
	local listener
	keep_head a -1000
	java_listens a J1
	listener=$PID
	queue_waiter r1 a
	stays 1 is_waiting r1
	kill "$listener"
	await_entry r1
	let_leave r1
	nothing_is_left
}

@test "a head without a score does not keep others out" {
	redis rpush 'redisson_lock_queue:{a}' "$JAVA_CLIENT:1" >/dev/null
	run -0 rlock fair -n a -- true
	no_keys
	java_locks J2 a
	redis rpush 'redisson_lock_queue:{a}' "$JAVA_CLIENT:1" >/dev/null
	queue_waiter r1 a
	java_unlocks J2 a
	await_entry r1
	let_leave r1
	nothing_is_left
}

@test "a thread of Java's that gives up holds no waiter up" {
	keep_head a 300000
	queue_waiter r1 a
	java_gives_up J1 a
	await_entry r1 8
	let_leave r1
	nothing_is_left
}

@test "a live waiter keeps its position though its score is long past" {
	start_holder r0 fair a
	for who in r1 r2 r3; do
		queue_waiter "$who" a
	done
	redis zadd 'redisson_lock_timeout:{a}' 1 "$(owner_in_queue a r1)" 2 "$(owner_in_queue a r2)" \
		3 "$(owner_in_queue a r3)" >/dev/null
	# Each of these looks for dead waiters.
	run -75 rlock fair -n a -- true
	let_leave r0
	for who in r1 r2 r3; do
		await_entry "$who"
		let_leave "$who"
	done
	nothing_is_left
}

@test "a waiter whose score has gone keeps its place" {
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
	wait_until 5 queue_has a 1
	assert [ ! -e in-y ]
	touch out-x
	await_entry y
	touch out-y
	ended_with 0 "${PIDS[r0]}"
	nothing_is_left
}

queue_has() {
	redis_says "$2" llen "$(queue_key "$1")"
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

# ---- turned away ----

@test "a call that does not wait is turned away without a word, and leaves no trace" {
	local before
	start_holder r0 fair a
	queue_waiter r1 a
	before=$(redis zrange 'redisson_lock_timeout:{a}' 0 -1; queue_owners a; redis hkeys 'rlock_waiters:{a}')
	run -75 rlock fair -n a -- true
	assert_output ''
	run -75 rlock fair -w 0 a -- true
	assert_output ''
	assert_equal "$(redis zrange 'redisson_lock_timeout:{a}' 0 -1; queue_owners a; redis hkeys 'rlock_waiters:{a}')" \
		"$before"
	let_all_leave r0 r1
	nothing_is_left
}

@test "a call that does not wait leaves no queue where there was none" {
	start_holder r0 fair a
	run -75 rlock fair -n a -- true
	has_no_queue a
	run -9 rlock fair -n -E 9 a -- true
	has_no_queue a
}

@test "a call that does not wait does not pass the queue by, though the lock is free" {
	keep_head a
	run -75 rlock fair -n a -- true
	assert_output ''
	assert_equal "$(queue_names a)" J1
	is_free a
	run -75 rlock fair -v -n a -- true
	assert_output --partial "kept for the next waiter, $JAVA_CLIENT:1"
}

@test "a call that waits for a while does not pass the queue by, and says for whose turn the lock is kept" {
	local start
	keep_head a
	start=$(now_ms)
	run -75 rlock fair -w 1200ms a -- true
	(($(now_ms) - start >= 1200 && $(now_ms) - start < 4000))
	assert_one_line "^rlock: a: timed out after 1\.2s: kept for the next waiter, $JAVA_CLIENT:1\$"
	assert_equal "$(queue_names a)" J1
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 1
	is_free a
}

@test "one of ours that is next is named by its note, and not passed by" {
	start_holder r0 fair a
	queue_waiter r1 --note 'nightly backup' a
	wait_until 5 has_just_looked a r1
	kill -STOP "${PIDS[r1]}"
	let_leave r0
	is_free a
	run -75 rlock fair -n a -- true
	run -75 rlock fair -w 100ms a -- true
	assert_one_line "^rlock: a: timed out after 100ms: kept for the next waiter, nightly backup \(.*:${PIDS[r1]}\)\$"
	kill -CONT "${PIDS[r1]}"
	await_entry r1
	let_leave r1
	nothing_is_left
}

@test "a plain lock is no part of the line, and passes it by" {
	keep_head a
	run -0 rlock run -n a -- true
	assert_equal "$(queue_names a)" J1
}

@test "a waiter whose time is over says which holder had the lock, and has left the queue" {
	start_holder r0 fair a --note 'the holder'
	run -75 rlock fair -w 300ms a -- true
	assert_one_line '^rlock: a: timed out after 300ms: held by the holder \(.*\), for [0-9.]+s$'
	has_no_queue a
	run -9 rlock fair -E 9 -w 50ms a -- true
	run -75 rlock fair -q -w 50ms a -- true
	assert_output ''
	has_no_queue a
	assert_equal "$(redis pubsub channels)" ''
}

@test "a waiter that gives up leaves the others in the queue as they were" {
	local before
	start_holder r0 fair a
	queue_waiter r1 a
	queue_waiter r2 -w 2500ms a
	queue_waiter r3 a
	before=$(redis zscore 'redisson_lock_timeout:{a}' "$(owner_in_queue a r3)")
	ended_with 75 "${PIDS[r2]}"
	assert_equal "$(queue_names a)" 'r1 r3'
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 2
	# The two, and when the line was last looked at.
	assert_equal "$(redis hlen 'rlock_waiters:{a}')" 3
	assert_equal "$(redis zscore 'redisson_lock_timeout:{a}' "$(owner_in_queue a r3)")" "$before"
	let_all_leave r0 r1 r3
	nothing_is_left
}

@test "a verbose caller is told after a second for which holder it waits" {
	start_holder r0 fair a --note 'nightly backup'
	run -75 rlock fair -v -w 3s a -- true
	assert_equal "$(grep -c 'waiting for' <<<"$output")" 1
	assert_line --regexp '^rlock: a: waiting for nightly backup \([^ ]+\), held for [0-9.]+s, position 1 in the queue$'
	let_leave r0
	keep_head b
	run -75 rlock fair -v -w 3s b -- true
	assert_line --regexp "^rlock: b: waiting for $JAVA_CLIENT:1"
}

# ---- leaving the line ----

@test "a signal ends a waiter, and takes it out of the queue" {
	local signal
	start_holder r0 fair a
	queue_waiter r1 a
	for signal in TERM:143 INT:130 HUP:129 QUIT:131; do
		queue_waiter r2 a
		queue_waiter r3 a
		kill -s "${signal%:*}" "${PIDS[r2]}"
		ended_with "${signal#*:}" "${PIDS[r2]}"
		assert_equal "$(queue_names a)" 'r1 r3'
		assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 2
		assert_equal "$(redis hlen 'rlock_waiters:{a}')" 3
		kill -s "${signal%:*}" "${PIDS[r3]}"
		ended_with "${signal#*:}" "${PIDS[r3]}"
		assert_equal "$(queue_names a)" r1
	done
	kill -s TERM "${PIDS[r1]}"
	ended_with 143 "${PIDS[r1]}"
	has_no_queue a
	let_leave r0
	nothing_is_left
}

@test "a signal that comes while the lock is being had leaves neither a lock nor a place" {
	local round
	for round in {1..25}; do
		start_holder r0 fair a
		queue_waiter "s$round" a
		touch out-r0
		kill -s TERM "${PIDS["s$round"]}"
		wait_until 5 is_gone "${PIDS["s$round"]}"
		wait_until 5 is_gone "${PIDS[r0]}"
		wait_until 5 no_keys
		rm -f in-r0 out-r0
	done
	nothing_is_left
}

@test "the end of the process that a lock is for ends the wait for it" {
	local script
	start_holder r0 fair a
	in_background bash -c 'rlock fair --pid $$ a & wait; exit 9'
	script=$PID
	wait_until 5 queue_has a 1
	queue_waiter r2 a
	kill -KILL "$script"
	queue_becomes 8 a r2
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 1
	let_all_leave r0 r2
	nothing_is_left
}

@test "when the head leaves while the lock is free the next one is woken" {
	# r1 is next for "a", which is free, and does without it as long as it has not got "b".
	for signal in TERM INT; do
		rm -f in-* out-*
		start_holder r0 fair b
		queue_waiter r1 a b
		queue_waiter r2 a
		assert_equal "$(queue_names a)" 'r1 r2'
		is_free a
		is_woken_by a r2 kill -s "$signal" "${PIDS[r1]}"
		assert_equal "$(queue_names b)" ''
		let_leave r2
		let_leave r0
		nothing_is_left
	done
}

@test "when the head's wait is over while the lock is free the next one is woken" {
	local best=10000 late
	for _ in 1 2 3; do
		rm -f in-* out-*
		start_holder r0 fair b
		queue_waiter r1 -w 2500ms a b
		queue_waiter r2 a
		ended_with 75 "${PIDS[r1]}"
		late=$(now_ms)
		await_entry r2
		late=$(($(cut -c 1-13 in-r2) - late))
		((late > best)) || best=$late
		let_leave r2
		let_leave r0
	done
	((best < 500)) || fail "entered $best ms later"
	nothing_is_left
}

# ---- without a command ----

@test "a script has a fair lock until it unlocks it, and the next one is woken" {
	in_background bash -c 'rlock fair --pid $$ a; inside held; rlock unlock a; inside after'
	PIDS[script]=$PID
	await_entry held
	queue_waiter r1 a
	is_woken_by a r1 touch out-held
	let_leave r1
	touch out-after
	ended_with 0 "${PIDS[script]}"
	nothing_is_left
	no_state_files
}

@test "a script joins the queue like a command" {
	start_holder r0 fair a
	queue_waiter r1 a
	in_background bash -c 'rlock fair --pid $$ a; inside held; rlock unlock a'
	PIDS[script]=$PID
	wait_until 5 queue_has a 2
	queue_waiter r2 a
	let_leave r0
	await_entry r1
	let_leave r1
	await_entry held
	is_waiting r2
	touch out-held
	await_entry r2
	let_leave r2
	ended_with 0 "${PIDS[script]}"
	nothing_is_left
}

@test "a script that dies frees its fair lock, and the next one is woken" {
	in_background bash -c 'rlock fair --pid $$ a; inside held; exit 9'
	PIDS[script]=$PID
	await_entry held
	queue_waiter r1 a
	wait_until 5 has_just_looked a r1
	kill -KILL "${PIDS[script]}"
	within "$(wake_limit)" is_inside r1
	let_leave r1
	touch out-held
	nothing_is_left
}

@test "a fair lock without a command is renewed, and can be renewed" {
	in_background bash -c 'rlock fair --pid $$ -t 1s a; inside held; rlock renew a >renewed; rlock unlock a'
	PIDS[script]=$PID
	await_entry held
	stays 2 is_held a
	touch out-held
	ended_with 0 "${PIDS[script]}"
	file_says renewed 1s || grep -qE '^9[0-9]+ms$' renewed
	nothing_is_left
}

@test "one shell acquires a fair lock for an owner, and another one releases it" {
	run -0 rlock fair --owner job-1 --lease 1m a
	has_count a 1
	run -75 rlock fair --owner job-2 --lease 1m -n a
	run -0 rlock fair --owner job-1 --lease 1m -n a
	has_count a 2
	queue_waiter r1 a
	run -0 rlock renew --owner job-1 --lease 1m a
	run -0 rlock unlock --owner job-1 a
	is_waiting r1
	is_woken_by a r1 rlock unlock --owner job-1 a
	let_leave r1
	nothing_is_left
}

@test "an owner waits in the queue, and has its turn" {
	start_holder r0 fair a
	queue_waiter r1 a
	in_background rlock fair --owner job-1 --lease 1m a
	PIDS[owner]=$PID
	wait_until 5 queue_has a 2
	queue_waiter r2 a
	let_leave r0
	await_entry r1
	is_running "${PIDS[owner]}"
	let_leave r1
	ended_with 0 "${PIDS[owner]}"
	is_waiting r2
	run -0 rlock unlock --owner job-1 a
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "two that wait for one owner are in the queue once, and each has a hold" {
	local first
	start_holder r0 fair a
	in_background rlock fair --owner job-1 --lease 1m a
	first=$PID
	wait_until 5 queue_has a 1
	in_background rlock fair --owner job-1 --lease 1m a
	wait_until 5 hears "$(channel a):$(redis lindex 'redisson_lock_queue:{a}' 0)" 2
	queue_has a 1
	let_leave r0
	ended_with 0 "$first"
	ended_with 0
	has_count a 2
	has_no_queue a
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	nothing_is_left
}

# hears CHANNEL COUNT: so many listen there.
hears() {
	[ "$(redis pubsub numsub "$1" | tail -n 1)" = "$2" ]
}

@test "a waiter that enters because its owner got the lock otherwise has left the queue" {
	held_by_stranger a
	in_background rlock fair --owner job-1 --lease 1m a
	wait_until 5 queue_has a 1
	redis del a >/dev/null
	run -0 rlock lock --owner job-1 --lease 1m -n a
	ended_with 0
	has_count a 2
	has_no_queue a
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	nothing_is_left
}

# ---- woken by other locks' releases ----

@test "a plain release wakes the head of the line, be it of a command or of a script" {
	start_holder p0 run a
	queue_waiter r1 a
	queue_waiter r2 a
	is_woken_by a r1 let_leave p0
	let_leave r1
	await_entry r2
	let_leave r2
	rm -f in-* out-*
	in_background bash -c 'rlock lock --pid $$ a; inside held; rlock unlock a'
	PIDS[script]=$PID
	await_entry held
	queue_waiter r1 a
	is_woken_by a r1 touch out-held
	let_leave r1
	ended_with 0 "${PIDS[script]}"
	nothing_is_left
}

@test "unlock --force wakes the head of the line, of a plain lock and of a fair one" {
	for verb in run fair; do
		rm -f in-* out-*
		start_holder r0 "$verb" a
		queue_waiter r1 a
		queue_waiter r2 a
		is_woken_by a r1 rlock unlock --force a
		is_waiting r2
		let_leave r1
		await_entry r2
		let_leave r2
		let_go
		ended_with 76 "${PIDS[r0]}"
		rm -f let-go
		nothing_is_left
	done
}

@test "unlock --force of a lock that is free leaves the queue as it is" {
	keep_head a
	queue_waiter r1 a
	run -1 rlock unlock --force a
	assert_equal "$(queue_names a)" 'J1 r1'
	java_gives_up J1 a
	await_entry r1
	let_leave r1
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

@test "with plain and fair waiters for one lock, all of them get it" {
	start_holder r0 fair a
	for number in 1 2 3; do
		queue_waiter "r$number" a
		in_background rlock run a -- inside "p$number"
		PIDS[p$number]=$PID
		wait_until 5 has_waiters a "$number"
	done
	touch let-go
	for who in r0 r1 r2 r3 p1 p2 p3; do
		took_less 5 ended_with 0 "${PIDS[$who]}"
		is_inside "$who"
	done
	(($(cat in-r1) < $(cat in-r2) && $(cat in-r2) < $(cat in-r3)))
	nothing_is_left
}

@test "a plain lock's end without a word lets the head in, and then the next one" {
	redis hset a somebody:1 1 >/dev/null
	redis pexpire a 1500 >/dev/null
	queue_waiter r1 a
	queue_waiter r2 a
	await_entry r1 8
	let_leave r1
	await_entry r2
	let_leave r2
	nothing_is_left
}

@test "a lock without an end is waited for until it is gone" {
	redis hset a somebody:1 1 >/dev/null
	queue_waiter r1 a
	stays 1 is_waiting r1
	redis del a >/dev/null
	await_entry r1 8
	let_leave r1
	nothing_is_left
}

# ---- at least ----

@test "the head waits until a lock's least time is over, and then gets in promptly" {
	local end late
	for verb in fair run; do
		rm -f in-* out-*
		run -0 rlock "$verb" --at-least 1500ms a -- true
		queue_waiter r1 a
		queue_waiter r2 a
		end=$(lease_end_ms a)
		await_entry r1
		late=$(($(cut -c 1-13 in-r1) - end))
		((late > -50 && late < 700)) || fail "entered $late ms after the lock's end"
		is_waiting r2
		let_leave r1
		await_entry r2
		let_leave r2
		nothing_is_left
	done
}

ttl_is_below() {
	local ttl
	ttl=$(redis pttl "$1")
	((ttl < $2))
}

@test "a waiter that waits while a least time begins learns of its earlier end" {
	# The lease would last for 30 s.
	in_background rlock fair --at-least 3s a -- inside r0
	PIDS[r0]=$PID
	await_entry r0
	queue_waiter r1 a
	let_leave r0
	ttl_is_below a 3000
	await_entry r1 8
	let_leave r1
	nothing_is_left
}

@test "a lock with a least time has no line of its own, and turns others away" {
	run -0 rlock fair --at-least 30s a -- true
	keys_are a 'rlock_holds:{a}'
	run -75 rlock fair -n a -- true
	run -75 rlock fair -w 50ms a -- true
	has_no_queue a
}

# ---- locks of another kind ----

@test "a read or write lock of that name is refused, and left as it was" {
	local before
	for verb in wlock rlock; do
		rm -f in-r0 out-r0
		start_holder r0 "$verb" a
		before=$(contents)
		run -78 rlock fair a -- true
		assert_one_line '^rlock: a: .+$'
		run -78 rlock fair -n a -- true
		run -78 rlock fair -w 5s a -- true
		run -78 rlock fair --owner job-1 --lease 1m a
		assert_equal "$(contents)" "$before"
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
	before=$(contents)
	run -78 rlock rlock -n a -- true
	run -78 rlock wlock -n a -- true
	assert_equal "$(contents)" "$before"
}

@test "a lock that turns into another kind is waited for no longer, and the line is left" {
	held_by_stranger a
	queue_waiter r1 a
	redis set a x >/dev/null
	ended_with 78 "${PIDS[r1]}"
	has_lines said-r1 1
	keys_are a
}
