#!/usr/bin/env bats
# The line for a fair lock when answers get lost, and when a server is full or comes back empty.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is line.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2119,SC2120,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/line

setup_file() {
	start_server
	# From here on the server knows the scripts: a request whose reply gets lost has been carried out.
	rlock fair warm -- rlock fair -w 1ms warm -- true
}

teardown_file() { stop_server; }

setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { watchful_teardown; }

# ---- answers that get lost ----

# Stands in each try to get in, and in no other request.
TRY='redisson_lock_token:{a}'

@test "the answer to the request that had the lock is lost: it is had once" {
	start_proxy
	proxy drop-reply "$TRY"
	run -0 rlock fair a -- redis-cli -s "$SERVER_SOCKET" hvals a
	assert_output 1
	faults_happened
	nothing_is_left
}

@test "the answer to the request that stood in line is lost: it is in line once, and gets the lock once" {
	holds r0 fair a
	stands r1 a
	start_proxy
	proxy drop-reply "$TRY" 2
	stands r2 a
	wait_until 5 faults_happened
	line_becomes 5 a r1 r2
	assert_equal "$(redis zcard "$(deadlines_key a)")" 2
	stays 0.5 line_is a r1 r2
	leaves r0
	have_turns r1 r2
	nothing_is_left
}

@test "the answer to the one whose turn it is is lost: the lock is had once, and the line goes on" {
	holds r0 fair a
	start_proxy
	in_background rlock fair a -- sh -c 'redis-cli -s "$SERVER_SOCKET" hvals a >counts; exec inside r1'
	PIDS[r1]=$PID
	wait_until 5 is_last a r1
	RLOCK_URL=unix://$SERVER_SOCKET stands r2 a
	proxy drop-reply "$TRY"
	leaves r0
	enters r1
	faults_happened
	assert_equal "$(cat counts)" 1
	assert_equal "$(line a)" r2
	have_turns r1 r2
	nothing_is_left
}

@test "whose first answer comes too late has the place of its first request, also after it lost it" {
	holds r0 fair a
	start_proxy
	proxy hold-reply "$TRY"
	begins r1 -w 30s --connect-timeout 1s a
	wait_until 5 is_last a r1
	RLOCK_URL=unix://$SERVER_SOCKET stands r2 a
	wait_until 5 said_to_come_again
	assert_equal "$(line a)" 'r1 r2'
	proxy release
	# A Java client with a fast clock drops both.
	assert_equal "$(java_tries J9 a 3600000)" 1
	line_becomes 6 a r1 r2
	leaves r0
	have_turns r1 r2
	nothing_is_left
}

# r1 listens for its turn: its second request was answered.
said_to_come_again() {
	[ "$(redis pubsub numsub "$(channel a):$(owner_in_line a r1)" | tail -n 1)" = 1 ]
}

@test "who waits and is cut off has its place again, and is woken" {
	holds r0 fair a
	start_proxy
	stands r1 a
	RLOCK_URL=unix://$SERVER_SOCKET stands r2 a
	stands r3 a
	for _ in 1 2 3; do
		proxy cut
		stays 0.5 line_is a r1 r2 r3
	done
	wait_until 5 said_to_come_again
	is_woken_by a r1 leaves r0
	have_turns r1 r2 r3
	nothing_is_left
}

@test "who lives, and can't listen for a while, keeps its place" {
	holds r0 fair a
	start_proxy
	stands r1 a
	RLOCK_URL=unix://$SERVER_SOCKET stands r2 a
	wait_until 5 said_to_come_again
	proxy cut-before subscribe 6
	proxy cut
	# It has asked for the lock again, over a new connection, and was told that it is taken.
	wait_until 5 says_it_listens a r1 0
	line_is a r1 r2
	leaves r0
	have_turns r1 r2
	nothing_is_left
}

@test "who waits in a black hole loses its place, and has it again behind it" {
	holds r0 fair a
	start_proxy
	stands r1 a
	RLOCK_URL=unix://$SERVER_SOCKET stands r2 a
	proxy blackhole on
	line_becomes 8 a r2
	proxy blackhole off
	proxy cut
	line_becomes 8 a r1 r2
	# What it sent into the hole may have come out of it late; this is itself.
	wait_until 8 is_listened_to a r1
	leaves r0
	have_turns r1 r2
	nothing_is_left
}

@test "CLIENT KILL of all who wait changes nothing about the line, and the head is woken" {
	holds r0 fair a
	stand_all r1 r2 r3
	for _ in 1 2 3; do
		redis client kill type normal >/dev/null
		redis client kill type pubsub >/dev/null
		stays 0.4 line_is a r1 r2 r3
	done
	wait_until 5 said_to_come_again
	is_woken_by a r1 leaves r0
	have_turns r1 r2 r3
	nothing_is_left
}

@test "SCRIPT FLUSH while they wait changes nothing" {
	own_server
	holds r0 fair a
	stand_all r1 r2
	redis script flush >/dev/null
	is_woken_by a r1 leaves r0
	redis script flush >/dev/null
	have_turns r1 r2
	nothing_is_left
}

# ---- a server that is full, or comes back empty ----

@test "on a full server who would wait is told so, and stands in no line" {
	own_server
	holds r0 fair a
	redis config set maxmemory 1 >/dev/null
	run -69 rlock fair a -- true
	assert_one_line '^rlock: a: .*memory'
	has_no_line a
	run -75 rlock fair -n a -- true
	leaves r0
	no_keys
}

@test "on a server that gets full a fair lock is given back, and who waited in vain is told" {
	own_server
	holds r0 fair a
	stands r1 -w 3s a
	stands r2 -w 3s a
	redis config set maxmemory 1 >/dev/null
	leaves r0
	is_free a
	for who in r1 r2; do
		ended_with 69 "${PIDS[$who]}"
		has_lines "said-$who" 1
		grep -q '^rlock: a: .*memory' "said-$who"
	done
	nothing_is_left
}

@test "on a server that was full for a while all who wait go on" {
	own_server
	holds r0 fair a
	stand_all r1 r2
	redis config set maxmemory 1 >/dev/null
	leaves r0
	stays 2.5 waits r1
	redis config set maxmemory 0 >/dev/null
	# One whose sign of life expired meanwhile has lost its position, and goes on all the same.
	all_leave r1 r2
	is_in r1
	is_in r2
	nothing_is_left
}

@test "a server that comes back empty: all who wait go on, in their order" {
	own_server
	for _ in 1 2 3; do
		rm -f in-* order
		holds r0 fair a -t 2s
		for who in r1 r2 r3 r4 r5; do
			passes "$who" a
		done
		kill_server
		own_server
		ended_with 76 "${PIDS[r0]}"
		for who in r1 r2 r3 r4 r5; do
			ended_with 0 "${PIDS[$who]}"
		done
		assert_equal "$(tr '\n' ' ' <order)" 'r1 r2 r3 r4 r5 '
		nothing_is_left
	done
}

@test "a server that comes back empty, and whose lock another one gets: all stand in line as before" {
	own_server
	holds r0 fair a -t 2s
	stand_all r1 r2 r3 r4 r5
	kill_server
	# Nobody finds it before the lock is taken.
	in_background redis-server --port 0 --unixsocket "$PWD/hidden.sock" --save '' --appendonly no --dir "$PWD"
	wait_until 5 redis-cli -s hidden.sock hset a somebody:1 1
	mv hidden.sock server/redis.sock
	ended_with 76 "${PIDS[r0]}"
	line_becomes 10 a r1 r2 r3 r4 r5
	redis del a >/dev/null
	have_turns r1 r2 r3 r4 r5
	nothing_is_left
}
