#!/usr/bin/env bats
# bats file_tags=long
# rlock fair: first come, first served, in one queue with Redisson's threads. Which calls are denied, what wakes the head of the
# queue, and the queue's order when waiters die, freeze or have wrong clocks, and when the server fails. model.bats covers random steps.

load ../lib/usual
load ../lib/queue
load ../lib/own_servers
load ../lib/replicas
load ../lib/clocks
load ../lib/proxying

# Give the server a port, since only a URL with a port can name a user.
setup_file() { start_server_at_port; }

# scores_are_ahead NAME CONTENDER...: whether the waiters' deadlines are like those of Redisson's: 300 s in the future for each
# position, not hours.
scores_are_ahead() {
	local name=$1 contender position=0 score ahead
	for contender in "${@:2}"; do
		((position += 1))
		score=$(redis zscore "redisson_lock_timeout:{$name}" "$(owner_in_queue "$name" "$contender")")
		ahead=$((${score%.*} - $(server_ms)))
		((ahead >= position * 300000 - 1000 && ahead <= 30000 + (position + 1) * 300000)) || return
	done
}

@test "rlock and Java's threads share one queue, and only the one whose turn it is gets notified" {
	local head listener
	start_holder r0 fair a
	queue_fair_contender r1 a
	java_locks J1 a >/dev/null
	# Without a subscription this thread would count as dead after 6 s.
	java_subscribes a J1
	listener=$PID
	queue_fair_contender r2 a
	queue_fair_contender r3 a
	queue_is a r1 J1 r2 r3
	scores_are_ahead a r1 J1 r2 r3
	head=$(owner_in_queue a r1)
	record_messages 'redisson_lock__channel:*'
	is_woken_by a r1 finish_contenders r0
	are_waiting r2 r3
	finish_contenders r1
	run -0 show_messages redisson_lock__channel:end
	# Leave out messages on the lock's own channel, which are for waiters of plain locks.
	assert_equal "$(grep -vx 'redisson_lock__channel:{a} 0' <<<"$output" | uniq)" "redisson_lock__channel:{a}:$head 0
redisson_lock__channel:{a}:$JAVA_CLIENT:1 0"
	are_waiting r2
	assert_equal "$(java_locks J1 a)" ''
	is_woken_by a r2 java_unlocks J1 a
	enter_in_order r2 r3
	kill "$listener"
	nothing_is_left
}

@test "a call does not overtake the queue when the lock is free, and names the waiter whose turn it is" {
	redis rpush 'redisson_lock_queue:{a}' "$JAVA_CLIENT:1" >/dev/null
	set_deadline a J1 60000
	run -75 rlock fair -n a -- true
	assert_output ''
	run_timed_out 75 rlock fair -w 2s a -- true
	assert_one_line "^rlock: a: timed out after 2s: kept for the next waiter, $JAVA_CLIENT:1; give a longer --wait\$"
	queue_is a J1
	is_free a
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: not held: dead waiters were removed from its queue$'
	nothing_is_left
}

@test "a call that leaves a free lock to a waiter for the plain lock does not name itself as the next waiter" {
	redis set 'rlock_turn:{a}' "$(server_ms)000 0123456789abcdef0123456789abcdef" >/dev/null
	run_timed_out 75 rlock fair -w 100ms a -- true
	assert_output 'rlock: a: timed out after 100ms: kept for the next waiter; give a longer --wait'
}

# Whether calls with -n that come more than 3 s apart acquire the lock "f" at last. The first call that finds the waiter dead gives it
# 10 s to come back.
calls_acquire() {
	local tries
	for ((tries = 8; tries > 0; tries--)); do
		! rlock fair -n f -- true || return 0
		pause_for 3.5
	done
	return 1
}

@test "calls with -n acquire a lock whose only waiter was killed, although they come more than 3 s apart" {
	hold_in_background f
	in_background rlock fair -w 100s f -- true
	wait_until 5 has_queue_length f 1
	# The waiter tries again every 2 s, and tells the server that it is subscribed.
	pause_for 3
	kill_with_renewers "$PID"
	end_commands
	wait_until 5 is_free f
	calls_acquire
	no_keys
}

@test "calls with -n acquire a lock whose only waiter was killed before it had subscribed" {
	local direct=$RLOCK_URL waiter
	hold_in_background f
	start_proxy
	# Hold also the second SUBSCRIBE, which follows after 2.5 s: otherwise a late SIGKILL would meet a subscribed waiter.
	proxy hold-request SUBSCRIBE 2
	in_background rlock fair -w 100s f -- true
	waiter=$PID RLOCK_URL=$direct
	wait_until 5 has_queue_length f 1
	wait_until 5 faults_happened
	kill_with_renewers "$waiter"
	end_commands
	wait_until 5 is_free f
	calls_acquire
	no_keys
}

# has_subscribed_in_queue NAME COUNT: whether the heartbeats of COUNT waiters say that they are subscribed.
has_subscribed_in_queue() {
	[ "$(redis hvals "rlock_waiters:{$1}" | awk '$4 > 0' | wc -l)" = "$2" ]
}

@test "a fair waiter whose subscriptions hang keeps its position" {
	local direct=$RLOCK_URL
	start_holder r0 fair a
	start_realtime_proxy
	proxy hold-request SUBSCRIBE 100
	queue_fair_contender r1 a
	RLOCK_URL=$direct queue_fair_contender r2 a
	# Long enough for both attempts to subscribe, which last 2.5 s each, and for the polls after them: none may delay the heartbeat.
	stays_true_for 8 queue_is a r1 r2
	proxy pass
	finish_contenders r0
	enter_in_order r1 r2
	nothing_is_left
}

@test "a waiter that has not subscribed yet keeps its position when all waiters and their attempts were stopped for seconds" {
	local direct=$RLOCK_URL first
	hold_in_background f
	local holder=$PID
	start_realtime_proxy
	proxy hold-request SUBSCRIBE 100
	in_background rlock fair -w 100s f -- true
	first=$PID RLOCK_URL=$direct
	wait_until 5 has_queue_length f 1
	run_waiter_in_real_time "$first"
	in_background rlock fair -w 100s f -- true
	wait_until 5 has_queue_length f 2
	# The second waiter tells the server that it is subscribed.
	wait_until 5 has_subscribed_in_queue f 1
	stop_waiters "$first" "$PID"
	# Now the first waiter's heartbeat ends, and the second one has been subscribed for 4 s.
	pause_for 4.5
	end_commands
	ended_with 0 "$holder"
	wait_until 5 is_free f
	has_queue_length f 2
	continue_waiters "$first" "$PID"
	proxy pass
	ended_with 0 "$first"
	ended_with 0 "$PID"
	no_keys
}

@test "a fair release wakes plain waiters too" {
	start_holder r0 fair a
	queue_contender p1 run a
	finish_contenders r0
	enters_when_woken p1
	finish_contenders p1
	nothing_is_left
}

@test "two waiters with the same owner have one position in the queue, and a hold each" {
	local number
	start_holder r0 fair a
	for number in 1 2; do
		in_background rlock fair --owner job-1 --lease 1m a
		wait_until 5 has_subscribers "$number"
	done
	has_queue_length a 1
	queue_fair_contender r1 a
	finish_contenders r0
	ended_with 0 "${BACKGROUND[1]}"
	ended_with 0 "${BACKGROUND[2]}"
	has_hold_count a 2
	are_waiting r1
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	enter_in_order r1
	nothing_is_left
}

@test "many waiters whose clocks differ by two hours acquire the lock in their order, with a fifth of them killed" {
	needs_wrong_clocks
	local number
	local -a dead=() living=()
	start_holder r0 fair a
	for number in {1..20}; do
		follow_clock_file "$PWD/clock$((number % 3))"
		step_clock "clock$((number % 3))" $((number % 3 * 3600))
		queue_fair_contender "r$number" a
		if ((number % 5 == 3)); then dead+=("r$number"); else living+=("r$number"); fi
	done
	for number in "${dead[@]}"; do
		kill_contender "$number"
	done
	finish_contenders r0
	# A contender that acquired the lock too early would keep it, so this wait for another contender would fail.
	for number in "${living[@]}"; do
		wait_until_entered "$number" 15
		finish_contenders "$number"
	done
	nothing_is_left
}

# Waiters far back in a long queue poll seldom. So the first live one must learn without a poll of its own that those before it
# count as dead.
@test "when all waiters near the head are stopped, one behind them acquires the lock soon, and they keep their positions" {
	local pids=()
	start_holder r0 fair a
	queue_fair_contenders r{1..18}
	pids=("${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}" "${PIDS[r4]}" "${PIDS[r5]}")
	stop_waiters "${pids[@]}"
	finish_contenders r0
	wait_until_entered r6 15
	continue_waiters "${pids[@]}"
	wait_until 5 queue_is a r{1..5} r{7..18}
	finish_contenders r6
	enter_in_order r1 r2 r3
	finish_all r{4..18}
	nothing_is_left
}

# keeps_queue_in_freeze: a waiter that is itself delayed by more than the 2 s of grace after the freeze is rightly removed for a moment.
keeps_queue_in_freeze() {
	kill -STOP "$SERVER_PID"
	pause_for 6
	kill -CONT "$SERVER_PID"
	stays_true_for 2.5 queue_is a r1 r2 r3
}

@test "a server that freezes for six seconds, or restarts empty, drops no waiter and keeps the order" {
	start_own_server
	start_holder r0 fair -t 24s --grace 1s a
	queue_fair_contenders r1 r2 r3
	keeps_queue_in_freeze || {
		wait_until 5 queue_is a r1 r2 r3
		keeps_queue_in_freeze
	}
	grep -qE '^rlock: a: waiting for .*, held for [0-9.]+s, position 2 in the queue$' stderr-r2
	# Stop the waiters while the server is down: otherwise their pauses grow to 1.5 s, and an empty server keeps the order for only 2 s.
	stop_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}"
	kill_server
	start_own_server
	continue_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}"
	ended_with 76 "${PIDS[r0]}"
	enter_in_order r1 r2 r3
	nothing_is_left
}

@test "on a narrow terminal a waiter prints the whole holder once, and updates a row with its age and the position in the queue" {
	local note='a long note, which does not fit into the row of a narrow terminal'
	start_holder h fair --note "$note" a
	run -75 env TERM=xterm script -qec 'stty cols 50; exec rlock fair -w 4s a -- true' /dev/null </dev/null
	assert_equal "$(grep -c "^rlock: a: waiting for $note"$'\r$' <<<"$output")" 1
	assert_output --regexp $'\rrlock: waiting, held for [0-9.]+s, position 1 [^\r]*\r'
	# The row must never be wider than the terminal.
	tr '\r' '\n' <<<"$output" | sed 's/\x1b\[K//' | grep '^rlock: waiting' >rows
	run -1 grep -E '.{50}' rows
	finish_all h
}

@test "a queue keeps its order when a replica takes over after an outage, and new waiters join at its end" {
	start_replicated_servers
	SERVER_SOCKET=$PWD/one/redis.sock
	ln -s one/redis.sock waiters.sock
	start_holder r0 fair a
	RLOCK_URL=unix://$PWD/waiters.sock queue_fair_contenders r1 r2 r3 r4 r5
	SERVER_SOCKET=$PWD/two/redis.sock
	wait_until 5 queue_is a r1 r2 r3 r4 r5
	# The new master must have the heartbeats that say so, or it would take the waiters for dead.
	wait_until 5 has_subscribed_in_queue a 5
	kill -s KILL "$MASTER"
	wait_until 5 is_gone "$MASTER"
	pause_for 2.5
	promote_replica
	# Send the new master requests for the lock before any waiter has reached it: they must not remove the waiters from the
	# queue.
	finish_contenders r0
	run -75 rlock fair -n a -- true
	queue_is a r1 r2 r3 r4 r5
	ln -s two/redis.sock moved.sock
	mv moved.sock waiters.sock
	wait_until_entered r1 15
	enter_in_order r1 r2 r3 r4 r5
}

# queue_java NAME CONTENDER...: queues Java's threads, with Redisson's wait times, for a lock whose holder has died.
queue_java() {
	local contender
	hold_by_foreign_client "$1"
	for contender in "${@:2}"; do
		java_locks "$contender" "$1" >/dev/null
	done
	redis del "$1" >/dev/null
	queue_is "$1" "${@:2}"
}

@test "dead Java waiters at the head of a free lock delay it by seconds, and a live one is never overtaken" {
	local listener server=$SERVER_SOCKET url=$RLOCK_URL
	redis acl setuser blind on nopass allkeys allchannels +@all -pubsub >/dev/null
	# Use a server with a replica: the Java waiter may be subscribed at the replica, where rlock cannot see it.
	start_replicated_servers
	SERVER_SOCKET=$PWD/one/redis.sock queue_java a J1
	start_fair_contender r5 a
	SERVER_SOCKET=$server RLOCK_URL=$url
	queue_java listens J1 J2
	java_subscribes listens J1
	start_fair_contender r2 listens
	queue_java unseen J1
	RLOCK_URL=redis://blind@127.0.0.1:$PORT start_fair_contender r3 unseen
	queue_java a J1 J2 J3
	start_fair_contender r1 a
	# Last, since J1 must subscribe within 6 s.
	queue_java sometimes J1
	start_fair_contender r4 sometimes
	wait_until 5 redis_says 1 exists 'rlock_waiters:{sometimes}:foreign'
	java_subscribes sometimes J1
	listener=$PID
	# Wait until rlock has noticed the subscription, which it checks every 2 s: otherwise its count of 6 s without one would continue.
	wait_until 5 redis_says 0 exists 'rlock_waiters:{sometimes}:foreign'
	stays_true_for 1.5 are_waiting r2 r3 r4 r5
	kill "$listener"
	stays_true_for 3.2 are_waiting r2 r3 r4 r5
	wait_until_entered r1 20
	finish_contenders r1
	stays_true_for 1 are_waiting r2 r3 r5
	queue_is listens J1 J2 r2
	queue_is unseen J1 r3
	for contender in r2 r3 r4 r5; do kill_contender "$contender"; done
	redis acl deluser blind >/dev/null
}

@test "a release by a user who may not remove waiters wakes the head of the queue, but reports a dead waiter that stays" {
	local url=redis://releaser@127.0.0.1:$PORT
	redis acl setuser releaser on nopass allkeys allchannels +@all -lrem >/dev/null
	RLOCK_URL=$url start_holder r0 run a
	queue_fair_contender r1 a
	is_woken_by a r1 finish_contenders r0
	assert_equal "$(grep -c 'not notified' stderr-r0)" 0
	finish_contenders r1
	run -0 rlock run -u "$url" a -- redis-cli -s "$SERVER_SOCKET" rpush 'redisson_lock_queue:{a}' "$JAVA_CLIENT:1"
	assert_line --regexp '^rlock: a: released, but waiters were not notified: .*[+]lrem'
	redis acl deluser releaser >/dev/null
	redis del 'redisson_lock_queue:{a}' >/dev/null
}
