#!/usr/bin/env bats
# Read and write locks: readers share, a writer is alone, and waiters get in when they may. The files
# readwrite_*.bats have the rest.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

@test "ten readers are in together, and one writer alone" {
	local guest
	for guest in 1 2 3 4 5 6 7 8 9 10; do
		start_guest "r$guest" rlock a
	done
	wait_until 5 all_are_inside r1 r2 r3 r4 r5 r6 r7 r8 r9 r10
	assert_equal "$(redis hlen a)" 11
	run -75 rlock wlock -n a -- true
	let_go
	all_ended_with 0
	no_keys
}

@test "while a writer is in no other gets in" {
	admit_guest w wlock a
	local before
	before=$(show_contents)
	run -75 rlock rlock -n a -- touch ran
	assert_output ''
	run -75 rlock wlock -n a -- touch ran
	assert_output ''
	run -75 rlock rlock --wait 0 a -- touch ran
	run -9 rlock rlock -n -E 9 a -- touch ran
	run -0 rlock wlock -n -E 0 a -- touch ran
	refute file_exists ran
	assert_equal "$(show_contents)" "$before"
}

@test "while a reader is in no writer gets in" {
	admit_guest r rlock a
	local before
	before=$(show_contents)
	run -75 rlock wlock -n a -- touch ran
	assert_output ''
	run -0 rlock wlock -n -E 0 a -- touch ran
	refute file_exists ran
	assert_equal "$(show_contents)" "$before"
	run -0 rlock rlock -n a -- touch ran
	file_exists ran
	assert_equal "$(show_contents)" "$before"
}

@test "a waiter whose time is over is told which holder has the lock, and leaves it as it was" {
	local before
	admit_guest w wlock a --note 'nightly import'
	before=$(show_contents)
	run -75 rlock rlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by nightly import \($UUID:$PID:write\), for [0-9.]+s: give a longer --wait, or end that job\$"
	run -75 rlock wlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by nightly import \($UUID:$PID:write\), for [0-9.]+s: give a longer --wait, or end that job\$"
	assert_equal "$(show_contents)" "$before"
	let_guest_out w
	ended_with 0
	admit_guest r rlock a --note 'a report'
	before=$(show_contents)
	run -75 rlock wlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by a report \($UUID:$PID\), for [0-9.]+s: give a longer --wait, or end that job\$"
	run -7 rlock wlock -E 7 -w 50ms a -- touch ran
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "a wait ends when its time is over, and not before" {
	local start took
	admit_guest r rlock a
	start=$(now_ms)
	run -75 rlock wlock -w 400ms a -- true
	took=$(($(now_ms) - start))
	((took >= 400 && took < 6000)) || fail "took $took ms"
	let_guest_out r
	ended_with 0
	admit_guest w wlock a
	start=$(now_ms)
	run -75 rlock rlock -w 400ms a -- true
	took=$(($(now_ms) - start))
	((took >= 400 && took < 6000)) || fail "took $took ms"
}

@test "a writer waits until all readers have left" {
	admit_guest r1 rlock a
	admit_guest r2 rlock a
	admit_guest r3 rlock a
	queue_guest w wlock a -v
	let_guest_out r2
	stays_outside 0.2 w
	let_guest_out r1
	stays_outside 0.2 w
	let_guest_out r3
	enters_woken w
	is_mode a write
}

# wakes_five_times VERB VERB: the lease of the holder has 30 s to go when it leaves, and a writer that waits for readers looks
# every 2 s.
wakes_five_times() {
	local turn first
	for turn in 1 2 3 4 5; do
		admit_guest "first$turn" "$1" a
		first=$PID
		queue_guest "second$turn" "$2" a -v
		let_guest_out "first$turn"
		enters_woken "second$turn"
		let_guest_out "second$turn"
		ended_with 0 "$first"
		ended_with 0
	done
	no_keys
}

@test "a writer is woken when the reader leaves" {
	wakes_five_times rlock wlock
}

@test "a reader is woken when the writer leaves" {
	wakes_five_times wlock rlock
}

@test "a writer is woken when the writer leaves" {
	wakes_five_times wlock wlock
}

@test "a writer that leaves lets all readers in at once" {
	admit_guest w wlock a
	local guest
	for guest in 1 2 3 4 5 6; do
		queue_guest "r$guest" rlock a
	done
	let_guest_out w
	wait_until 5 all_are_inside r1 r2 r3 r4 r5 r6
}

@test "readers and writers of other names do not wait for each other" {
	admit_guest w wlock a
	admit_guest r rlock b
	run -0 rlock wlock -n c -- true
	run -0 rlock rlock -n b -- true
}

@test "of several names all are acquired or none" {
	admit_guest w wlock b --note 'the writer'
	run -75 rlock rlock -n a b c -- true
	run -75 rlock wlock -n a b c -- true
	run -75 rlock rlock -w 50ms a b c -- true
	assert_one_line '^rlock: b: .*the writer'
	assert_equal "$(list_keys)" "b
rlock_holds:{b}"
	let_guest_out w
	ended_with 0
	admit_guest r rlock c
	run -75 rlock wlock -n a b c -- true
	run -0 rlock rlock -n a b c -- sh -c '$REDIS exists a b c; $REDIS hvals a; $REDIS hlen c'
	assert_output "3
read
1
3"
	assert_equal "$(redis exists a b)" 0
	let_guest_out r
	ended_with 0
	no_keys
}

@test "a writer of several names waits for the readers of each, and holds none meanwhile" {
	admit_guest r1 rlock a
	admit_guest r2 rlock b
	queue_guest w wlock a -v b c
	is_free c
	let_guest_out r1
	wait_until 5 is_free a
	stays_outside 0.2 w
	is_free c
	let_guest_out r2
	enters_woken w
	is_mode a write
	is_mode b write
	is_mode c write
	let_guest_out w
	ended_with 0
	no_keys
}

@test "what a Java reader holds keeps a writer out, and lets readers in" {
	redis hset a mode read "$JAVA" 1 >/dev/null
	redis pexpire a 20000 >/dev/null
	redis set "{a}:$JAVA:rwlock_timeout:1" 1 px 20000 >/dev/null
	local before
	before=$(show_contents)
	run -75 rlock wlock -w 50ms a -- true
	assert_one_line "^rlock: a: .*$JAVA"
	run -0 rlock rlock -n a -- true
	assert_equal "$(show_contents)" "$before"
	# Its own lease counts again, not ours of 30 s.
	ttl_between 10000 a 20000
}

@test "what a Java writer holds keeps all out until it publishes" {
	redis hset a mode write "$JAVA:write" 1 >/dev/null
	redis pexpire a 30000 >/dev/null
	local before
	before=$(show_contents)
	run -75 rlock rlock -n a -- true
	run -75 rlock wlock -w 50ms a -- true
	assert_one_line "^rlock: a: .*$JAVA:write"
	assert_equal "$(show_contents)" "$before"
	queue_guest r rlock a
	redis del a >/dev/null
	redis publish 'redisson_rwlock:{a}' 1 >/dev/null
	wait_until 5 is_inside r
}

@test "a Java reader leaves as Redisson has it, and our reader stays in" {
	admit_guest r rlock a
	local owner
	owner=$(owner_of a "$PID")
	redis hincrby a "$JAVA" 1 >/dev/null
	redis set "{a}:$JAVA:rwlock_timeout:1" 1 px 30000 >/dev/null
	# RedissonReadLock.unlockInnerAsync, without its latch.
	run -0 redis eval '
		if redis.call("hincrby", KEYS[1], ARGV[2], -1) == 0 then
			redis.call("hdel", KEYS[1], ARGV[2])
		end
		redis.call("del", KEYS[3] .. ":1")
		local longest = -3
		for _, field in ipairs(redis.call("hkeys", KEYS[1])) do
			local count = tonumber(redis.call("hget", KEYS[1], field))
			if type(count) == "number" then
				for i = count, 1, -1 do
					local left = redis.call("pttl", KEYS[4] .. ":" .. field .. ":rwlock_timeout:" .. i)
					longest = math.max(left, longest)
				end
			end
		end
		if redis.call("hlen", KEYS[1]) > 1 and longest > 0 then
			redis.call("pexpire", KEYS[1], longest)
			return 0
		end
		redis.call("del", KEYS[1])
		redis.call("publish", KEYS[2], ARGV[1])
		return 1' 4 a 'redisson_rwlock:{a}' "{a}:$JAVA:rwlock_timeout" '{a}' 0 "$JAVA"
	assert_output 0
	assert_equal "$(redis hkeys a)" "mode
$owner"
	let_guest_out r
	ended_with 0
	no_keys
}

@test "a reader that leaves a free lock to Redisson's waiters is not told of a holder" {
	redis set 'rlock_turn:{a}' - px 20000 >/dev/null
	run -75 rlock read -w 300ms a -- touch ran
	assert_output 'rlock: a: timed out after 300ms: kept for the next waiter: give a longer --wait'
	refute file_exists ran
}
