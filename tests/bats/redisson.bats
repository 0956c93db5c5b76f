#!/usr/bin/env bats
# The plain lock beside Java programs: what they do is done here by redis-cli, with scripts of the same effect
# as Redisson's. Each sees the other's hold, waits for it, and is woken by its release.

load ../lib/usual

JAVA=0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e:57

teardown() {
	redis acl setuser default allchannels >/dev/null
	watchful_teardown
}

channel() { beside redisson_lock__channel "$1"; }

# java_lock NAME [OWNER [LEASE_MS]]: one try. Prints nothing when the lock was acquired, else its TTL.
java_lock() {
	redis eval '
		if redis.call("exists", KEYS[1]) == 0 or redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
			redis.call("hincrby", KEYS[1], ARGV[2], 1)
			redis.call("pexpire", KEYS[1], ARGV[1])
			return nil
		end
		return redis.call("pttl", KEYS[1])' 1 "$1" "${3:-30000}" "${2:-$JAVA}"
}

# java_unlock NAME: prints 1 when the lock is free now, nothing when it is not Java's.
java_unlock() {
	redis eval '
		if redis.call("hexists", KEYS[1], ARGV[2]) == 0 then
			return nil
		end
		redis.call("del", KEYS[1])
		redis.call(ARGV[3], KEYS[2], ARGV[1])
		return 1' 2 "$1" "$(channel "$1")" 0 "$JAVA" publish
}

java_force_unlock() {
	redis eval '
		if redis.call("del", KEYS[1]) == 1 then
			redis.call(ARGV[2], KEYS[2], ARGV[1])
			return 1
		end
		return 0' 2 "$1" "$(channel "$1")" 0 publish
}

# ---- what is looked at ----

# listen CHANNEL: writes each message on it to $HEARD.
listen() {
	HEARD=$BATS_TEST_TMPDIR/heard
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv subscribe "$0" >"$1"' "$1" "$HEARD"
	wait_until 5 file_has "$HEARD" '"subscribe"'
}

# The messages so far, once those before a last one have certainly come.
heard() {
	redis publish "$1" end >/dev/null
	wait_until 5 file_has "$HEARD" '"end"'
	grep '^"message"' "$HEARD" | grep -v '"end"$'
}

# ---- Java has it ----

@test "a lock that Java holds is busy, and a try in vain, which is told its owner, leaves it as it was" {
	java_lock a "$JAVA" 20000
	redis set 'redisson_lock_token:{a}' 41 >/dev/null
	run -75 rlock run -n a -- true
	assert_output ''
	run -75 rlock run -n b a -- true
	run -75 rlock run -w 20ms a -- true
	assert_one_line "^rlock: a: .*$JAVA"
	assert_equal "$(redis hgetall a | xargs)" "$JAVA 1"
	run -1 ttl_is_above a 20000
	assert_equal "$(redis get 'redisson_lock_token:{a}')" 41
	assert_equal "$(redis dbsize)" 2
}

# java_unlock_at NAME: releases the lock for good; prints when, by the server's clock.
java_unlock_at() {
	redis eval '
		redis.call("del", KEYS[1])
		redis.call(ARGV[2], KEYS[2], ARGV[1])
		local now = redis.call("time")
		return now[1] * 1000 + math.floor(now[2] / 1000)' 2 "$1" "$(channel "$1")" 0 publish
}

@test "Java's unlock wakes a waiter within 100 ms" {
	# Both by the server's clock. A busy machine may be slow at times, but not each time.
	local best=10000 freed had
	for _ in {1..30}; do
		java_lock a
		in_background rlock run a -- sh -c '$REDIS hvals "rlock_holds:{a}" >held'
		wait_until 5 has_waiters a
		freed=$(java_unlock_at a)
		ended_with 0
		read -r _ had _ <held
		((had - freed > best)) || best=$((had - freed))
		((best >= 100)) || break
	done
	((best >= 0 && best < 100))
}

@test "another message on the channel does not let a waiter in" {
	java_lock a
	in_background rlock run -w 5s a -- true
	wait_until 5 has_waiters a
	for message in 1 0 nonsense; do
		redis publish "$(channel a)" "$message" >/dev/null
	done
	is_running "$PID"
	assert_equal "$(redis hkeys a)" "$JAVA"
	java_unlock a >/dev/null
	ended_with 0
}

@test "a lock of Java's that loses its end is busy until Java releases it, and the end of a lease lets us in" {
	java_lock a
	redis persist a >/dev/null
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	assert_equal "$(redis pttl a)" -1
	java_force_unlock a >/dev/null
	ended_with 0
	java_lock a "$JAVA" 300
	run -0 rlock run -w 10s a -- true
	no_keys
}

# ---- we have it ----

@test "our hold looks like Redisson's" {
	hold_in_background a
	assert_equal "$(redis type a)" hash
	assert_equal "$(redis hlen a)" 1
	run -0 redis hkeys a
	assert_output --regexp '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+$'
	has_count a 1
	ttl_is_above a 25000
	run -1 ttl_is_above a 30000
}

@test "our release publishes 0 on Redisson's channel, once, and nothing while the lock is still held" {
	listen "$(channel a)"
	run -0 rlock run a -- sh -c 'rlock run a -- true; $REDIS publish "redisson_lock__channel:{a}" 7'
	run -0 heard "$(channel a)"
	assert_output "\"message\",\"$(channel a)\",\"7\"
\"message\",\"$(channel a)\",\"0\""
}

@test "Java neither gets nor unlocks the lock that we hold, and is told how long to wait, until we have released it" {
	local owner
	hold_in_background a
	owner=$(redis hkeys a)
	run -0 java_lock a
	[ "$output" -gt 25000 ]
	assert_equal "$(java_unlock a)" ''
	assert_equal "$(redis hgetall a | xargs)" "$owner 1"
	let_go
	ended_with 0
	assert_equal "$(java_lock a)" ''
	assert_equal "$(redis hgetall a | xargs)" "$JAVA 1"
}

@test "Java's forceUnlock makes us lose the lock, and having lost it we leave Java's lock alone" {
	hold_in_background a -t 1s
	assert_equal "$(java_force_unlock a)" 1
	java_lock a
	# What is left of the hold gives no right to it.
	run -75 rlock run -n a -- true
	ended_with 76
	assert_equal "$(redis hgetall a | xargs)" "$JAVA 1"
	ttl_is_above a 20000
}

@test "what a broken hold has left disturbs no later one" {
	run -0 rlock run a -- ask_redis "$SERVER_SOCKET" copy 'rlock_holds:{a}' kept
	redis rename kept 'rlock_holds:{a}' >/dev/null
	redis persist 'rlock_holds:{a}' >/dev/null
	run -0 rlock run a -- sh -c 'rlock run a -- $REDIS hvals a; $REDIS hlen "rlock_holds:{a}"'
	assert_output "2
1"
	no_keys
}

@test "the answers that Java keeps for itself are left alone, and so is its counter when a lock is broken" {
	redis set 'redisson_unlock_latch:{a}:1' 1 >/dev/null
	run -0 rlock run a -- true
	assert_equal "$(redis keys '*')" 'redisson_unlock_latch:{a}:1'
	redis set 'redisson_lock_token:{b}' 41 >/dev/null
	java_lock b
	run -0 rlock unlock --force b
	assert_equal "$(redis keys '*{b}')" 'redisson_lock_token:{b}'
}

# ---- names ----

@test "a name with braces goes into the names beside it as it is" {
	listen 'redisson_lock__channel:a{b}c'
	redis set 'redisson_lock_token:a{b}c' 41 >/dev/null
	run -0 rlock run 'a{b}c' -- sh -c '$REDIS keys "*" | sort; $REDIS get "redisson_lock_token:a{b}c"'
	assert_output "a{b}c
redisson_lock_token:a{b}c
rlock_holds:a{b}c
42"
	run -0 heard 'redisson_lock__channel:a{b}c'
	assert_output '"message","redisson_lock__channel:a{b}c","0"'
}

@test "Java's unlock of a name with braces, closed or not, wakes a waiter" {
	for name in 'a{b}c' 'a}b' '{}x'; do
		java_lock "$name"
		in_background rlock run "$name" -- true
		wait_until 5 has_subscribers "$(channel "$name")"
		java_unlock "$name" >/dev/null
		ended_with 0
	done
	wait_until 5 no_keys
}

has_subscribers() {
	[ "$(redis pubsub numsub "$1" | tail -n 1)" = 1 ]
}

# ---- a strict server ----

@test "a user that may not publish releases the lock all the same, with a warning" {
	redis acl setuser default resetchannels >/dev/null
	run -0 rlock run a -- true
	assert_one_line '^rlock: a: .+$'
	no_keys
}
