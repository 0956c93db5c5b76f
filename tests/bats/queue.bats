#!/usr/bin/env bats
# bats file_tags=long
# The queue of a fair lock when its waiters die, stand still or are cut off, when its server stands still, comes back empty
# or fails over, and when Java's threads at its head are gone; and what many waiters cost. What the turns are: fair.bats.

# PIDS is queue.bash's.
# shellcheck disable=SC2034,SC2119,SC2120,SC2154

load ../lib/usual
load ../lib/proxying
load ../lib/queue
load ../lib/own_servers
load ../lib/replicas
load ../lib/clocks

# Behind a port too, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }

# ---- dead waiters ----

@test "heads in a row that are killed hold up the queue for seconds, and one behind them costs no waiter anything" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4 r5 r6
	for party in r1 r2 r3 r5; do
		kill_waiter "$party"
	done
	let_leave r0
	await_entry r4 15
	take_turns r4 r6
	nothing_is_left
}

# queue_many COUNT: they come one behind the other, with clocks that differ by two hours where that can be; a fifth of them is
# killed while they wait, some of those while the others have their turns.
queue_many() {
	local count=$1 number party
	local -a all=() dead=() living=()
	start_holder r0 fair a
	for ((number = 1; number <= count; number++)); do
		case $((number % 3)) in
		0) clock_is_off ;;
		1) clock_is_off 3600 ;;
		2) clock_is_off -3600 ;;
		esac
		queue_passer "r$number" a
		all+=("r$number")
		if ((number % 5 == 3)); then dead+=("r$number"); else living+=("r$number"); fi
	done
	assert_equal "$(queue_names a)" "${all[*]}"
	for party in "${dead[@]::${#dead[@]}/2}"; do
		kill_with_renewers "${PIDS[$party]}"
	done
	let_leave r0
	# One of these may be quicker.
	for party in "${dead[@]:${#dead[@]}/2}"; do
		kill_with_renewers "${PIDS[$party]}" || :
	done
	for party in "${living[@]}"; do
		ended_with 0 "${PIDS[$party]}"
	done
	assert_equal "$(grep -vxF "$(printf '%s\n' "${dead[@]}")" order | tr '\n' ' ')" "${living[*]} "
	run -0 sort -c -t r -k 2n order
	nothing_is_left
}

@test "many waiters whose clocks differ by two hours get in in their order, a fifth of them killed" {
	need_wrong_clocks
	local count=20
	[ -z "${RLOCK_LONG_TESTS:-}" ] || count=200
	queue_many "$count"
}

# ---- waiters that stand still, or are cut off ----

@test "one that stood still while others had their turns comes before those that came after it" {
	start_holder r0 fair a
	queue_waiters r1 r2 r3 r4
	stop_waiters "${PIDS[r1]}" "${PIDS[r3]}"
	let_leave r0
	await_entry r2 15
	continue_waiters "${PIDS[r1]}" "${PIDS[r3]}"
	queue_becomes 5 a r1 r3 r4
	wait_until 5 is_heard_of a r3
	let_leave r2
	take_turns r1 r3 r4
	nothing_is_left
}

# Those far back in a long queue look seldom.
@test "when all waiters near the head of a long queue stand still, one behind them acquires the lock soon" {
	start_holder r0 fair a
	queue_waiters r{1..18}
	stop_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}" "${PIDS[r4]}" "${PIDS[r5]}"
	let_leave r0
	await_entry r6 15
	continue_waiters "${PIDS[r1]}" "${PIDS[r2]}" "${PIDS[r3]}" "${PIDS[r4]}" "${PIDS[r5]}"
	let_all_leave r{1..18}
	nothing_is_left
}

@test "a waiter that is cut off keeps its position, and is woken" {
	start_holder r0 fair a
	start_proxy
	queue_waiter r1 a
	RLOCK_URL=unix://$SERVER_SOCKET queue_waiter r2 a
	proxy cut
	stays 0.5 queue_is a r1 r2
	wait_until 5 is_listened_to a r1
	is_woken_by a r1 let_leave r0
	take_turns r1 r2
	nothing_is_left
}

# ---- servers ----

@test "a server that stands still for six seconds drops no waiter, and keeps the order" {
	own_server
	start_holder r0 fair a
	queue_waiters r1 r2 r3
	kill -STOP "$SERVER_PID"
	let_pass 6
	kill -CONT "$SERVER_PID"
	stays 2.5 queue_is a r1 r2 r3
	let_leave r0
	take_turns r1 r2 r3
	nothing_is_left
}

@test "a server that comes back empty: all waiters go on, in their order" {
	own_server
	start_holder r0 fair a -t 2s
	for party in r1 r2 r3 r4 r5; do
		queue_passer "$party" a
	done
	kill_server
	own_server
	ended_with 76 "${PIDS[r0]}"
	for party in r1 r2 r3 r4 r5; do
		ended_with 0 "${PIDS[$party]}"
	done
	assert_equal "$(tr '\n' ' ' <order)" 'r1 r2 r3 r4 r5 '
	nothing_is_left
}

@test "a queue keeps its order when a replica takes over after an outage, and a newcomer is behind it" {
	local party
	replicated_servers
	SERVER_SOCKET=$PWD/one/redis.sock
	ln -s one/redis.sock waiters.sock
	start_holder r0 fair a
	RLOCK_URL=unix://$PWD/waiters.sock queue_waiters r1 r2 r3 r4 r5
	SERVER_SOCKET=$PWD/two/redis.sock
	wait_until 5 queue_is a r1 r2 r3 r4 r5
	for party in r1 r2 r3 r4 r5; do
		wait_until 5 says_it_listens a "$party" 1
	done
	kill -s KILL "$MASTER"
	wait_until 5 is_gone "$MASTER"
	let_pass 2.5
	promote_replica
	# The first request for this lock there, while none waits there.
	let_leave r0
	run -75 rlock fair -n a -- true
	queue_is a r1 r2 r3 r4 r5
	ln -s two/redis.sock moved.sock
	mv moved.sock waiters.sock
	await_entry r1 15
	take_turns r1 r2 r3 r4 r5
}

# ---- Java's threads at the head ----

# queue_java NAME PARTY...: Java's threads, with Redisson's waits, for a free lock; as if the one that had it had died.
queue_java() {
	local party
	java_locks J9 "$1" >/dev/null
	for party in "${@:2}"; do
		java_locks "$party" "$1" >/dev/null
	done
	redis del "$1" >/dev/null
	queue_is "$1" "${@:2}"
}

# queue_java_at_replicas: a thread of Java's, and r5 behind it, at a server that has a replica, where it may listen.
queue_java_at_replicas() {
	local SERVER_SOCKET=$SERVER_SOCKET RLOCK_URL=$RLOCK_URL
	replicated_servers
	SERVER_SOCKET=$PWD/one/redis.sock
	queue_java a J1
	start_waiter r5 a
}

all_wait() {
	local party
	for party; do is_waiting "$party" || return; done
}

@test "Java's waiters at the head of a free lock that are dead hold it up for seconds, and none that may listen is passed" {
	local listener
	redis acl setuser blind on nopass allkeys allchannels +@all -pubsub >/dev/null
	queue_java_at_replicas
	queue_java listens J1 J2
	java_listens listens J1
	start_waiter r2 listens
	queue_java unseen J1
	RLOCK_URL=redis://blind@127.0.0.1:$PORT start_waiter r3 unseen
	queue_java sometimes J1
	start_waiter r4 sometimes
	queue_java a J1 J2 J3
	start_waiter r1 a
	stays 3.5 all_wait r1 r2 r3 r4 r5
	java_listens sometimes J1
	listener=$PID
	stays 2.5 all_wait r2 r3 r4 r5
	kill "$listener"
	stays 2.2 all_wait r2 r3 r4 r5
	await_entry r1 20
	let_leave r1
	stays 1 all_wait r2 r3 r5
	queue_is listens J1 J2 r2
	queue_is unseen J1 r3
	for party in r2 r3 r4 r5; do kill_waiter "$party"; done
	redis acl deluser blind >/dev/null
}

@test "unlock --force of a free lock removes dead waiters from its queue, and says so" {
	queue_java a J1 J2
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: not held: dead waiters were removed from its queue$'
	nothing_is_left
}

# ---- what waiters cost ----

# How many commands clients have sent, but for those of redis-cli here; what scripts do is not counted.
client_commands() {
	redis info commandstats | awk -F '[:=,]' '
		/^cmdstat_(eval|evalsha|script|subscribe|unsubscribe|client|hello|auth|select|ping)/ { sum += $3 }
		END { print sum + 0 }'
}

@test "a waiter costs the server one command in two seconds, and a lock is passed on with four commands a turn" {
	local count=20 number start took before commands
	local -a all=()
	start_holder r0 fair a
	for ((number = 1; number <= count; number++)); do
		queue_passer "r$number" a
		all+=("r$number")
	done
	start=$(now_ms) before=$(client_commands)
	let_pass 5
	commands=$(($(client_commands) - before))
	took=$(($(now_ms) - start))
	echo "$commands commands of $count in $took ms"
	# One more for each where that time begins and ends, on average half of that; and two renewals in ten seconds.
	((commands <= count * took / 2000 + count / 2 + 4 * took / 10000))
	((commands >= count * took / 5000))
	before=$(client_commands) start=$(now_ms)
	touch out-r0
	wait_until 60 has_lines order "$count"
	took=$(($(now_ms) - start))
	commands=$(($(client_commands) - before))
	echo "$commands commands for $count turns in $took ms"
	for party in "${all[@]}"; do
		ended_with 0 "${PIDS[$party]}"
	done
	# A waiter may look once in two seconds; on average they waited for half the time.
	((commands <= 4 * count + count * took / 4000))
	assert_equal "$(tr '\n' ' ' <order)" "${all[*]} "
	nothing_is_left
}
