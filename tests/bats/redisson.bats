#!/usr/bin/env bats
# The plain lock beside Java programs, which redis-cli plays here with scripts that have the same effect as Redisson's. Each side sees
# the other's hold, waits for it, and is woken by its release. (tests/interop uses Redisson itself.)

load ../lib/usual
load ../lib/contenders

# java_lock NAME [LEASE_MS]: makes one attempt. Prints nothing if the lock was acquired, else its TTL.
java_lock() {
	redis eval '
		if redis.call("exists", KEYS[1]) == 0 or redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
			redis.call("hincrby", KEYS[1], ARGV[2], 1)
			redis.call("pexpire", KEYS[1], ARGV[1])
			return nil
		end
		return redis.call("pttl", KEYS[1])' 1 "$1" "${2:-30000}" "$JAVA"
}

# java_force_unlock NAME: breaks the lock, and prints when, by the server's clock.
java_force_unlock() {
	redis eval '
		redis.call("del", KEYS[1])
		redis.call("publish", KEYS[2], ARGV[1])
		local now = redis.call("time")
		return now[1] * 1000 + math.floor(now[2] / 1000)' 2 "$1" "$(key_of_lock redisson_lock__channel "$1")" 0
}

java_has() {
	assert_equal "$(redis hgetall "$1" | xargs)" "$JAVA 1"
}

@test "a lock that Java holds is busy; a failed attempt names its owner and does not change it" {
	java_lock a 60000
	redis set 'redisson_lock_token:{a}' 41 >/dev/null
	run -75 rlock run -n a -- true
	assert_output ''
	run -75 rlock run -n b a -- true
	run_timed_out 75 rlock run -w 20ms a -- true
	assert_one_line "^rlock: a: .*$JAVA"
	java_has a
	run -1 ttl_is_above a 60000
	assert_equal "$(redis get 'redisson_lock_token:{a}')" 41
	assert_equal "$(redis dbsize)" 2
}

@test "Java's release wakes a waiter within 100 ms; other messages do not let it acquire the lock" {
	# Compare two times of the server's clock. Only the best of 30 rounds counts, since a busy machine can be slow at times.
	local best=10000 freed had message
	for _ in {1..30}; do
		java_lock a
		in_background rlock run a -- sh -c '$REDIS hvals "rlock_holds:{a}" >held'
		wait_until 5 has_waiters a
		for message in 1 0 nonsense; do
			redis publish 'redisson_lock__channel:{a}' "$message" >/dev/null
		done
		is_running "$PID"
		java_has a
		freed=$(java_force_unlock a)
		ended_with 0
		read -r _ had _ <held
		((had - freed > best)) || best=$((had - freed))
		((best >= 100)) || break
	done
	((best >= 0 && best < 100))
}

@test "rlock's hold looks like Redisson's: it excludes Java, which gets its TTL, until the release" {
	hold_in_background a
	assert_equal "$(redis type a)" hash
	run -0 redis hgetall a
	assert_output --regexp '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:[0-9]+.1$'
	ttl_between 15000 a 30000
	run -0 java_lock a
	[ "$output" -gt 15000 ]
	assert_equal "$(redis hlen a)" 1
	end_commands
	ended_with 0
	assert_equal "$(java_lock a)" ''
	java_has a
}

@test "Redisson's unlock latches and token counters are not changed by a release or by unlock --force" {
	redis set 'redisson_unlock_latch:{a}:1' 1 >/dev/null
	redis set 'redisson_lock_token:{b}' 41 >/dev/null
	java_lock b
	run -0 rlock run a -- true
	run -0 rlock unlock --force b
	keys_are 'redisson_unlock_latch:{a}:1' 'redisson_lock_token:{b}'
}

@test "a release publishes 0 once on Redisson's channel, and a name with braces is used unchanged in keys and channels" {
	local name
	for name in a 'a{b}c'; do
		redis set "$(key_of_lock redisson_lock_token "$name")" 41 >/dev/null
		record_messages 'redisson_lock__channel:*'
		run -0 rlock run "$name" -- sh -c 'rlock run "$1" -- true; $REDIS publish "$2" 7 >/dev/null; $REDIS keys "*"' \
			sh "$name" "$(key_of_lock redisson_lock__channel "$name")"
		assert_equal "$(sort <<<"$output" | xargs)" \
			"$name $(key_of_lock redisson_lock_token "$name") $(key_of_lock rlock_holds "$name")"
		run -0 show_messages redisson_lock__channel:end
		assert_output "$(key_of_lock redisson_lock__channel "$name") 7
$(key_of_lock redisson_lock__channel "$name") 0"
		redis flushall >/dev/null
	done
}

