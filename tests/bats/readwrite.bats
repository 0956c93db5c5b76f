#!/usr/bin/env bats
# Read and write locks: readers share, a writer is alone, and what stands on the server is what Redisson's
# read/write lock would have put there.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/scripting

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() { watchful_teardown; }

# ---- what stands on the server ----

@test "a read lock is the hash and the timeout key that Redisson's reader has" {
	admit_guest r rlock a
	local owner
	owner=$(owner_of a "$PID")
	assert_equal "$(redis hgetall a)" "mode
read
$owner
1"
	assert_equal "$(list_keys)" "a
rlock_ends:{a}
rlock_holds:{a}
{a}:$owner:rwlock_timeout:1"
	assert_equal "$(redis get "{a}:$owner:rwlock_timeout:1")" 1
	ttl_between 25000 a 30000
	ttl_between 25000 "{a}:$owner:rwlock_timeout:1" 30000
	ttl_between 25000 'rlock_holds:{a}' 30000
	ttl_between 25000 'rlock_ends:{a}' 30000
	let_guest_out r
	ended_with 0
	no_keys
}

@test "a write lock is the hash that Redisson's writer has, and no timeout key" {
	admit_guest w wlock a
	local owner
	owner=$(owner_of a "$PID")
	assert_equal "$(redis hgetall a)" "mode
write
$owner:write
1"
	assert_equal "$(list_keys)" "a
rlock_holds:{a}"
	ttl_between 25000 a 30000
	ttl_between 25000 'rlock_holds:{a}' 30000
	let_guest_out w
	ended_with 0
	no_keys
}

@test "each reader has a field and a timeout key of its own" {
	local first second
	admit_guest r1 rlock a -t 1m
	first=$PID
	admit_guest r2 rlock a -t 20s
	second=$PID
	local one two
	one=$(owner_of a "$first")
	two=$(owner_of a "$second")
	assert_equal "$(redis hgetall a)" "mode
read
$one
1
$two
1"
	ttl_between 55000 "{a}:$one:rwlock_timeout:1" 60000
	ttl_between 15000 "{a}:$two:rwlock_timeout:1" 20000
	assert_equal "$(redis hlen 'rlock_holds:{a}')" 2
	let_guest_out r1
	ended_with 0 "$first"
	assert_equal "$(redis hgetall a)" "mode
read
$two
1"
	assert_equal "$(list_keys '{a}:*')" "{a}:$two:rwlock_timeout:1"
	assert_equal "$(redis hlen 'rlock_holds:{a}')" 1
	let_guest_out r2
	ended_with 0 "$second"
	no_keys
}

@test "each hold of a reader has a timeout key, and the last one's goes first" {
	run -0 rlock rlock a -- sh -c '
		rlock rlock -n a -- sh -c "\$REDIS hget a \$RLOCK_OWNER; \$REDIS keys \"{a}:*\" | sort"
		$REDIS hget a "$RLOCK_OWNER"
		$REDIS keys "{a}:*"
	'
	assert_equal "${#lines[@]}" 5
	assert_line -n 0 2
	assert_line -n 1 --regexp "^\{a\}:$UUID:[0-9]+:rwlock_timeout:1\$"
	assert_line -n 2 "${lines[1]%1}2"
	assert_line -n 3 1
	assert_line -n 4 "${lines[1]}"
	no_keys
}

@test "a writer that re-enters is counted, and stays the only one" {
	run -0 rlock wlock a -- sh -c '
		rlock wlock -n a -- $REDIS hgetall a
		$REDIS hvals a
		$REDIS dbsize
	'
	assert_equal "${#lines[@]}" 7
	assert_line -n 1 write
	assert_line -n 2 --regexp ':write$'
	assert_line -n 3 2
	assert_line -n 4 write
	assert_line -n 5 1
	assert_line -n 6 2
	no_keys
}

@test "a reader inside its own write lock has a field and a timeout key, and the mode stays write" {
	run -0 rlock wlock a -- sh -c '
		rlock rlock -n a -- sh -c "\$REDIS hgetall a; \$REDIS keys \"{a}:*\""
		$REDIS hgetall a
		$REDIS dbsize
	'
	local owner=${lines[4]}
	assert_output "mode
write
$owner:write
1
$owner
1
{a}:$owner:rwlock_timeout:1
mode
write
$owner:write
1
2"
	no_keys
}

@test "names with braces, closed or not, go into the names beside them as they are" {
	local name owner
	for name in 'a{b}c' '{a}:b' 'a{b' '{}x'; do
		admit_guest r rlock "$name"
		owner=$(owner_of "$name" "$PID")
		record_messages "redisson_rwlock:$name"
		assert_equal "$(list_keys)" "$(printf '%s\n' "$name" "$name:$owner:rwlock_timeout:1" \
			"rlock_ends:$name" "rlock_holds:$name" | LC_ALL=C sort)"
		queue_guest w wlock "$name"
		is_held "rlock_writer:$name"
		let_guest_out r
		wait_until 5 is_inside w
		assert_equal "$(list_keys)" "$(printf '%s\n' "$name" "rlock_holds:$name" | LC_ALL=C sort)"
		let_guest_out w
		ended_with 0
		assert_equal "$(show_messages "redisson_rwlock:$name")" '0 1'
		wait_until 1 no_keys
		rm -f in-* out-*
	done
}

@test "a name with a closing brace alone is wrapped as any other" {
	run -0 rlock rlock 'a}b' -- sh -c '$REDIS keys "{*"'
	assert_output --regexp "^\{a\}b\}:$UUID:[0-9]+:rwlock_timeout:1\$"
	no_keys
}

@test "the command is told the kind of its lock, and an owner without ':write'" {
	run -0 rlock rlock a -- sh -c 'echo $RLOCK_MODE; $REDIS hexists a $RLOCK_OWNER'
	assert_output "read
1"
	run -0 rlock wlock a -- sh -c 'echo $RLOCK_MODE; $REDIS hexists a $RLOCK_OWNER:write'
	assert_output "write
1"
}

@test "a writer that waits for readers leaves a key with a short life, which goes when it is in" {
	admit_guest r rlock a
	queue_guest w wlock a --note 'the writer'
	ttl_between 1 'rlock_writer:{a}' 5000
	run -0 redis get 'rlock_writer:{a}'
	assert_output --partial 'the writer'
	let_guest_out r
	wait_until 5 is_inside w
	is_free 'rlock_writer:{a}'
	let_guest_out w
	ended_with 0
	no_keys
}

@test "a writer that waits for a writer, or does not wait, claims no turn" {
	admit_guest r rlock a
	run -75 rlock wlock -n a -- true
	is_free 'rlock_writer:{a}'
	let_guest_out r
	ended_with 0
	admit_guest w1 wlock a
	queue_guest w2 wlock a
	is_free 'rlock_writer:{a}'
	let_go
	ended_with 0
	no_keys
}

# ---- messages ----

@test "the last reader to leave publishes 0, those before it nothing" {
	local first
	record_messages 'redisson_rwlock:{a}'
	admit_guest r1 rlock a
	first=$PID
	admit_guest r2 rlock a
	let_guest_out r1
	ended_with 0 "$first"
	redis publish 'redisson_rwlock:{a}' between >/dev/null
	let_guest_out r2
	ended_with 0
	assert_equal "$(show_messages 'redisson_rwlock:{a}')" 'between 0'
}

@test "a writer that leaves publishes 1, and nothing while it is still in" {
	record_messages 'redisson_rwlock:{a}'
	run -0 rlock wlock a -- sh -c '
		rlock wlock -n a -- true
		rlock rlock -n a -- true
		$REDIS publish "redisson_rwlock:{a}" between'
	assert_equal "$(show_messages 'redisson_rwlock:{a}')" 'between 1'
}

@test "a reader that entered twice publishes once, when it is out" {
	record_messages 'redisson_rwlock:{a}'
	run -0 rlock rlock a -- sh -c 'rlock rlock -n a -- true; $REDIS publish "redisson_rwlock:{a}" between'
	assert_equal "$(show_messages 'redisson_rwlock:{a}')" 'between 0'
}

@test "nothing is published on the channel of plain locks" {
	record_messages 'redisson_lock__channel:{a}'
	run -0 rlock rlock a -- true
	run -0 rlock wlock a -- true
	assert_equal "$(show_messages 'redisson_lock__channel:{a}')" ''
}

@test "a write lock released with a read of its owner inside becomes a read lock, and publishes 1" {
	record_messages 'redisson_rwlock:{a}'
	run -0 rlock wlock a -- sh -c 'rlock rlock -n a -- inside r >/dev/null 2>&1 3>&- & comes_true test -e in-r'
	is_mode a read
	assert_equal "$(redis hlen a)" 2
	assert_equal "$(redis hlen 'rlock_holds:{a}')" 1
	redis publish 'redisson_rwlock:{a}' between >/dev/null
	let_guest_out r
	wait_until 5 no_keys
	assert_equal "$(show_messages 'redisson_rwlock:{a}')" '1 between 0'
}

# ---- what is let in, and what is not ----

@test "ten readers are in together, and one writer alone" {
	local guest
	for guest in 1 2 3 4 5 6 7 8 9 10; do
		start_guest "r$guest" rlock a
	done
	wait_until 5 all_are_inside r1 r2 r3 r4 r5 r6 r7 r8 r9 r10
	assert_equal "$(redis hlen a)" 11
	run -75 rlock wlock -n a -- true
	let_go
	wait "${BACKGROUND[@]}"
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
	assert_one_line "^rlock: a: timed out after 50ms: held by nightly import \($UUID:$PID:write\), for [0-9.]+s\$"
	run -75 rlock wlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by nightly import \($UUID:$PID:write\), for [0-9.]+s\$"
	assert_equal "$(show_contents)" "$before"
	let_guest_out w
	ended_with 0
	admit_guest r rlock a --note 'a report'
	before=$(show_contents)
	run -75 rlock wlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by a report \($UUID:$PID\), for [0-9.]+s\$"
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
	queue_guest w wlock a
	let_guest_out r2
	stays_outside 0.2 w
	let_guest_out r1
	stays_outside 0.2 w
	let_guest_out r3
	within 1.5 is_inside w
	is_mode a write
}

# wakes_five_times VERB VERB: the lease of the holder has 30 s to go when it leaves, and a waiter that has just
# looked would not look again for two.
wakes_five_times() {
	local turn first late=0
	for turn in 1 2 3 4 5; do
		admit_guest "first$turn" "$1" a
		first=$PID
		queue_guest "second$turn" "$2" a
		let_guest_out "first$turn"
		within 1.5 is_inside "second$turn" || ((late += 1))
		wait_until 5 is_inside "second$turn"
		let_guest_out "second$turn"
		ended_with 0 "$first"
		ended_with 0
	done
	# A machine that stalls has its part in one.
	((late <= 1))
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
	within 1.5 all_are_inside r1 r2 r3 r4 r5 r6
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
	queue_guest w wlock a b c
	is_free c
	let_guest_out r1
	wait_until 5 is_free a
	stays_outside 0.2 w
	is_free c
	let_guest_out r2
	within 1.5 is_inside w
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
	within 1.5 is_inside r
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

# ---- again ----

@test "ten levels of readers count ten holds, and each is released" {
	cat >level <<-'EOS'
		#!/bin/sh
		[ "$1" = 10 ] || rlock rlock -n a -- ./level $(($1 + 1)) || exit
		$REDIS hget a "$RLOCK_OWNER"
		[ "$1" != 10 ] || exit 7
	EOS
	chmod +x level
	run -7 rlock rlock a -- ./level 1
	assert_output 10
	no_keys
}

@test "a reader inside a writer inside a writer: each hold is released for itself" {
	run -0 rlock wlock a -- sh -c '
		rlock wlock -n a -- sh -c "rlock rlock -n a -- \$REDIS hvals a; \$REDIS hvals a"
		$REDIS hvals a
	'
	assert_output "write
2
1
write
2
write
1"
	no_keys
}

@test "a writer inside a reader inside its own write lock re-enters" {
	run -0 rlock wlock a -- rlock rlock -n a -- rlock wlock -n a -- ask_redis "$SERVER_SOCKET" hvals a
	assert_output "write
2
1"
	no_keys
}

# never_to_be_had COMMAND...: 64 at once, in one line, and nothing has changed.
never_to_be_had() {
	local before
	before=$(show_contents)
	took_less 10 run -64 "$@"
	assert_one_line '^rlock: a: an upgrade of a read lock would be a deadlock: release the read lock first'
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "an upgrade of a read lock is a deadlock: 64 at once, however long one would wait" {
	admit_guest r rlock a
	RLOCK_HELD=$(inherited_holds_of "$PID")
	export RLOCK_HELD
	never_to_be_had rlock wlock a -- touch ran
	never_to_be_had rlock wlock -n a -- touch ran
	never_to_be_had rlock wlock -w 20s a -- touch ran
	never_to_be_had rlock wlock -n -E 0 a -- touch ran
	never_to_be_had rlock wlock b a -- touch ran
	RLOCK_HELD='' admit_guest other rlock a
	never_to_be_had rlock wlock -w 20s a -- touch ran
	has_listeners 0
}

@test "an upgrade inside a read lock of the same script, or the same owner, is a deadlock too" {
	start_locking_script rlock a
	never_to_be_had rlock wlock --pid "$PID" a
	never_to_be_had rlock wlock --pid "$PID" -w 20s a
	run -0 rlock unlock --pid "$PID" a
	no_keys
	run -0 rlock rlock --owner job-1 --lease 1m a
	never_to_be_had rlock wlock --owner job-1 --lease 1m a
	never_to_be_had rlock wlock --owner job-1 --lease 1m -w 20s a
	run -0 rlock unlock --owner job-1 a
	no_keys
}

@test "a reader that released its read lock gets the write lock" {
	run -0 bash -c '
		rlock rlock --pid $$ a
		rlock wlock --pid $$ a 2>/dev/null
		echo $?
		rlock unlock a
		rlock wlock --pid $$ -n a
		$REDIS hget a mode'
	assert_output "64
write"
	wait_until 5 no_keys
}

@test "commands side by side do not share the write lock that one of them takes" {
	in_background sh -c 'rlock wlock a -- inside x & rlock wlock a -- inside y & rlock rlock a -- inside z & wait'
	one_is_in() { [ "$(find . -name 'in-?' | wc -l)" = 1 ]; }
	wait_until 5 one_is_in
	wait_until 5 has_listeners 2
	stays 0.3 one_is_in
	let_go
	ended_with 0
	all_are_inside x y z
	no_keys
}

@test "a daemon that kept the environment of a writer is a stranger to the lock" {
	local held
	held=$(rlock wlock a -- printenv RLOCK_HELD)
	admit_guest w wlock a
	RLOCK_HELD=$held run -75 rlock rlock -n a -- true
	RLOCK_HELD=$held run -75 rlock wlock -n a -- true
	let_guest_out w
	ended_with 0
	admit_guest r rlock a
	RLOCK_HELD=$held run -75 rlock wlock -n a -- true
}

# ---- a write lock that becomes a read lock ----

@test "readers that wait get in at once when a writer goes on as a reader, and writers don't" {
	admit_guest w wlock a
	RLOCK_HELD=$(inherited_holds_of "$PID") admit_guest own rlock a
	queue_guest r1 rlock a
	queue_guest r2 rlock a
	queue_guest w2 wlock a
	let_guest_out w
	within 1.5 all_are_inside r1 r2
	is_mode a read
	stays_outside 0.3 w2
	let_guest_out r1 r2
	stays_outside 0.2 w2
	let_guest_out own
	within 1.5 is_inside w2
}

@test "what a writer that went on as a reader keeps has the reader's time to live" {
	run -0 rlock wlock -t 1m a -- sh -c 'rlock rlock -n -t 10s a -- inside r >/dev/null 2>&1 3>&- &
		comes_true test -e in-r; $REDIS pttl a'
	assert [ "$output" -gt 55000 ]
	ttl_between 5000 a 10000
	ttl_between 5000 'rlock_holds:{a}' 10000
}

@test "a Java writer that goes on as a reader by a script of Redisson's lets our readers in when they look" {
	redis hset a mode write "$JAVA:write" 1 "$JAVA" 1 >/dev/null
	redis pexpire a 6000 >/dev/null
	redis set "{a}:$JAVA:rwlock_timeout:1" 1 px 60000 >/dev/null
	queue_guest r rlock a
	# It publishes nothing then, and leaves the time to live as it is.
	redis hdel a "$JAVA:write" >/dev/null
	redis hset a mode read >/dev/null
	within 8 is_inside r
}

# ---- without a command ----

@test "a script acquires and releases a read and a write lock" {
	for shell in bash dash; do
		run -0 "$shell" -c '
			rlock rlock --pid $$ a
			$REDIS hvals a
			rlock unlock a
			$REDIS exists a
			rlock wlock --pid $$ a
			$REDIS hvals a
			rlock unlock a
			$REDIS dbsize
		'
		assert_output "read
1
0
write
1
0"
	done
}

@test "read and write are other names for rlock and wlock" {
	run -0 rlock read a -- ask_redis "$SERVER_SOCKET" hget a mode
	assert_output read
	run -0 rlock write a -- ask_redis "$SERVER_SOCKET" hget a mode
	assert_output write
	run -0 rlock rlock a -- rlock read a -- rlock rlock -n a -- true
	run -75 rlock wlock a -- env -u RLOCK_HELD rlock read -n a -- true
	run -64 rlock read a -- rlock write a -- true
	no_keys
}

@test "without --pid a read and a write lock belong to the process that called rlock" {
	run -0 bash -c 'rlock rlock a; $REDIS hget a mode; rlock unlock a; rlock wlock a; $REDIS hget a mode; rlock unlock a; exit'
	assert_output "read
write"
	no_keys
}

@test "a shell that dies releases its read lock and its write lock within a second" {
	for verb in rlock wlock; do
		start_locking_script "$verb" a
		kill -KILL "$PID"
		wait_until 5 no_keys
		wait_until 5 no_state_files
	done
}

@test "a shell that dies releases one of the read locks, and a waiter is woken by the last" {
	local first
	start_locking_script rlock a
	first=$PID
	start_locking_script rlock a
	queue_guest w wlock a
	kill -KILL "$first"
	has_two_fields() { redis_says 2 hlen a; }
	wait_until 5 has_two_fields
	stays_outside 0.2 w
	kill -KILL "${BACKGROUND[1]}"
	within 2.5 is_inside w
}

@test "unlock releases what was locked last: the read, then the write" {
	run -0 bash -c '
		rlock wlock --pid $$ a
		rlock rlock --pid $$ a
		rlock rlock --pid $$ a
		$REDIS hvals a
		rlock unlock a
		$REDIS hvals a
		rlock unlock a
		$REDIS hvals a
		rlock unlock a
		$REDIS dbsize
		rlock unlock -q a 2>/dev/null
		echo $?
	'
	assert_output "write
1
2
write
1
1
write
1
0
1"
}

@test "a script unlocks its write lock while a child of it reads on" {
	start_script '
		rlock wlock --pid $$ a
		bash -c "rlock rlock --pid \$\$ a; touch child; until_let_go" &
		comes_true test -e child
		rlock unlock a && touch ready
		wait'
	wait_until 5 file_exists ready
	is_mode a read
	run -0 rlock rlock -n a -- true
	run -75 rlock wlock -n a -- true
	let_go
	ended_with 0
	wait_until 5 no_keys
}

@test "renew renews the read or the write lock of a script, and prints what is left" {
	for verb in rlock wlock; do
		run -0 bash -c '
			rlock "$1" --pid $$ a
			for key in $($REDIS keys "*"); do
				$REDIS pexpire "$key" 5000 >/dev/null
			done
			rlock renew a
			for key in $($REDIS keys "*"); do
				$REDIS pttl "$key"
			done
			rlock unlock a
			exit
		' script "$verb"
		assert_line -n 0 --regexp '^(30s|29\.[0-9]+s)$'
		for line in "${lines[@]:1}"; do
			assert [ "$line" -gt 25000 ]
		done
		assert [ "${#lines[@]}" -ge 3 ]
		no_keys
	done
}

@test "renew of a reader prints what is left of its own lock, though another reader's lasts longer" {
	run -0 rlock rlock --owner job-1 --lease 10m a
	run -0 rlock rlock --owner job-2 --lease 10s a
	run -0 rlock renew --owner job-2 --lease 20s a
	assert_output --regexp '^(20s|19\.[0-9]+s)$'
	ttl_between 500000 a 600000
	ttl_between 500000 '{a}:job-1:0:rwlock_timeout:1' 600000
	ttl_between 15000 '{a}:job-2:0:rwlock_timeout:1' 20000
}

@test "the steps of a job acquire, re-enter and release read and write locks by their owner" {
	run -0 rlock wlock --owner job-1 --lease 1m a
	run -75 rlock rlock --owner job-2 --lease 1m -n a
	run -0 rlock wlock --owner job-1 --lease 1m -n a
	run -0 rlock rlock --owner job-1 --lease 1m -n a
	assert_equal "$(redis hgetall a)" "mode
write
job-1:0:write
2
job-1:0
1"
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	is_mode a write
	run -0 rlock unlock --owner job-1 a
	no_keys
	run -0 rlock rlock --owner job-1 --lease 1m a
	run -0 rlock rlock --owner job-2 --lease 1m -n a
	run -0 rlock rlock --owner job-1 --lease 1m -n a
	assert_equal "$(redis hvals a)" "read
2
1"
	run -0 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	run -1 rlock unlock --owner job-1 a
	run -0 rlock unlock --owner job-2 a
	no_keys
	nothing_runs
}

@test "a read and a write lock inside \$( ) return at once" {
	run -0 timeout 10 bash -c '
		x=$(rlock rlock --pid $$ a)
		y=$(rlock wlock --pid $$ b)
		$REDIS hget a mode
		$REDIS hget b mode
		rlock unlock a
		rlock unlock b
		exit
	'
	assert_output "read
write"
	no_keys
}

@test "a wait without a command ends with the process that it is for" {
	admit_guest w wlock a
	for verb in rlock wlock; do
		start_script 'rlock "$1" --pid $$ a; :' "$verb"
		wait_until 5 has_listeners
		kill -KILL "$PID"
		wait_until 5 has_listeners 0
	done
	let_guest_out w
	wait_until 5 no_keys
	no_state_files
}

# ---- --mode: one of an owner's holds ----

# fields_are FIELD...: the owners in the lock "a", in the order of the alphabet.
fields_are() {
	assert_equal "$(redis hkeys a | grep -vx mode | LC_ALL=C sort | xargs)" "$*"
}

# both_for_job: a write lock, and a read lock inside, of an owner.
both_for_job() {
	rlock wlock --owner job --lease 60s a
	rlock rlock --owner job --lease 60s a
	fields_are job:0 job:0:write
}

@test "an owner releases the hold of the kind that --mode names" {
	both_for_job
	run -0 rlock unlock --owner job --mode write a
	fields_are job:0
	run -1 rlock unlock --owner job --mode write a
	run -1 rlock unlock --owner job --mode plain a
	run -0 rlock unlock --owner job --mode read a
	no_keys
	both_for_job
	run -0 rlock unlock --owner job --mode read a
	fields_are job:0:write
	run -0 rlock unlock --owner job a
	no_keys
}

@test "a process releases the hold of the kind that --mode names" {
	rlock wlock --pid $$ a
	rlock rlock --pid $$ a
	run -0 rlock unlock --pid $$ --mode write a
	assert is_mode a read
	run -1 rlock unlock --pid $$ --mode fair a
	run -0 rlock renew --pid $$ --mode read a
	run -1 rlock renew --pid $$ --mode write a
	run -0 rlock unlock --pid $$ --mode read a
	no_keys
	rlock fair --pid $$ a
	run -0 rlock renew --pid $$ --mode plain a
	run -0 rlock unlock --pid $$ --mode fair a
	no_keys
	nothing_runs
}

@test "an owner renews the hold of the kind that --mode names" {
	both_for_job
	run -0 rlock renew --owner job --mode write --lease 120s a
	ttl_between 0 '{a}:job:0:rwlock_timeout:1' 60000
	ttl_between 100000 a 120000
	run -0 rlock renew --owner job --mode read --lease 120s a
	ttl_between 100000 '{a}:job:0:rwlock_timeout:1' 120000
	run -1 rlock renew --owner job --mode plain --lease 120s a
	rlock unlock --force -q a
	no_keys
}

@test "of a lock that is broken --mode says which kind it has to be" {
	both_for_job
	run -1 rlock unlock --force --mode plain a
	run -0 rlock unlock --force --mode read a
	fields_are job:0:write
	run -1 rlock unlock --force --mode read a
	run -0 rlock unlock --force --mode write a
	no_keys
	both_for_job
	run -0 rlock unlock --force --holder job:0 --mode read a
	fields_are job:0:write
	run -0 rlock unlock --force --holder job:0 --mode write a
	no_keys
	rlock lock --owner job --lease 60s a
	run -1 rlock unlock --force --mode write a
	run -0 rlock unlock --force --mode fair a
	no_keys
	rlock rlock --owner job --lease 60s a
	rlock rlock --owner other --lease 60s a
	run -1 rlock unlock --force --mode write a
	run -0 rlock unlock --force --mode read a
	no_keys
}

@test "a --mode that is no kind of lock is refused" {
	run -64 rlock unlock --mode shared a
	assert_output --partial "'shared': not plain, fair, read, write or sem"
	run -64 rlock renew --mode '' a
	run -64 rlock run --mode read a -- true
}
