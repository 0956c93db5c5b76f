#!/usr/bin/env bats
# Many readers of one lock: what the server does for one of them does not grow with their number, those that died
# are removed although the lock is never free, and the lock lasts as long as the one that lasts longest.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

MINUTE_MS=60000

# readers NAME COUNT MS: as many readers of "a" as if each had called rlock, with a lease of so long. With a
# negative time they have died so long ago.
readers() {
	redis eval '
		local prefix, count, left_ms = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
		local now = redis.call("TIME")
		local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
		local end_ms = string.format("%.0f", now_ms + left_ms)
		redis.call("HSET", "a", "mode", "read")
		for i = 1, count do
			local owner = prefix .. i .. ":0"
			redis.call("HSET", "a", owner, 1)
			redis.call("HSET", "rlock_holds:{a}", "hold-of-" .. owner,
				owner .. " " .. string.format("%.0f", now_ms) .. " " .. end_ms .. " - a note", owner, " hold-of-" .. owner)
			redis.call("ZADD", "rlock_ends:{a}", end_ms, owner)
			if left_ms > 0 then
				redis.call("SET", "{a}:" .. owner .. ":rwlock_timeout:1", 1, "PX", left_ms)
			end
		end
		for _, key in ipairs({ "a", "rlock_holds:{a}", "rlock_ends:{a}" }) do
			if redis.call("PTTL", key) < left_ms then
				redis.call("PEXPIRE", key, left_ms)
			end
		end' 0 "$@"
}

# java_reader MS: a thread of a Java service with a lease of so long.
java_reader() {
	redis hset a "$JAVA" 1 >/dev/null
	redis set "{a}:$JAVA:rwlock_timeout:1" 1 px "$1" >/dev/null
	[ "$(redis pttl a)" -gt "$1" ] || redis pexpire a "$1" >/dev/null
}

# fields_are FIELD...: of the lock.
fields_are() {
	assert_equal "$(redis hkeys a | LC_ALL=C sort)" "$(printf '%s\n' "$@" | LC_ALL=C sort)"
}

# monitored COMMAND [ARG...]: the commands that it had the server do, in scripts too, in the file "monitored".
monitored() {
	rm -f monitored
	# shellcheck disable=SC2016
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" monitor >monitored'
	wait_until 10 grep -qs OK monitored
	"$@"
	redis echo over >/dev/null
	wait_until 10 grep -q '"echo" "over"' monitored
	kill "$PID"
}

# ---- what one reader costs ----

@test "a reader among 1,000 costs no more commands than one among 20, and none that reads them all" {
	local lease count few=
	for lease in 30s 2h; do
		for count in 20 1000; do
			redis flushall >/dev/null
			readers some "$count" $((60 * MINUTE_MS))
			rlock rlock -n -l "$lease" warm -- true
			monitored rlock rlock -n -l "$lease" a -- true
			run grep -iE '"(hgetall|hvals|hkeys)" "(a|rlock_holds:\{a\})"' monitored
			assert_output ''
			run grep -c ' lua\]' monitored
			assert [ "$output" -gt 0 ]
			few=${few:-$output}
			# A reply that is late on a busy machine has a request sent twice.
			assert [ "$output" -le $((3 * few)) ]
			ttl_between $((59 * MINUTE_MS)) a $((60 * MINUTE_MS))
			assert_equal "$(redis hlen a)" $((count + 1))
		done
		few=
	done
}

@test "a writer that finds 1,000 readers costs no more commands than one that finds 20, and is told one of them" {
	local count few=
	for count in 20 1000; do
		redis flushall >/dev/null
		readers some "$count" $((60 * MINUTE_MS))
		monitored run -75 rlock wlock -n -v a -- true
		assert_output --partial 'held by a note (some'
		few=${few:-$(grep -c ' lua\]' monitored)}
		run grep -iE '"(hgetall|hvals|hkeys)" "(a|rlock_holds:\{a\})"' monitored
		assert_output ''
		assert [ "$(grep -c ' lua\]' monitored)" -le "$few" ]
	done
}

@test "the hold of an owner among 1,000 readers is found, renewed and released without a look at the others" {
	readers some 1000 $((60 * MINUTE_MS))
	run -0 rlock rlock --owner ours --lease 10m a
	run -0 rlock rlock --owner ours --lease 20m a
	assert_equal "$(redis hget a ours:0)" 2
	monitored run -0 rlock renew --owner ours --lease 10m a
	assert_output --regexp '^(20m|19m[0-9]+s)$'
	run grep -iE '"(hgetall|hvals|hkeys)" "(a|rlock_holds:\{a\})"' monitored
	assert_output ''
	monitored run -0 rlock unlock --owner ours a
	run grep -iE '"(hgetall|hvals|hkeys)" "(a|rlock_holds:\{a\})"' monitored
	assert_output ''
	assert_equal "$(redis hget a ours:0)" 1
	ttl_between $((9 * MINUTE_MS)) '{a}:ours:0:rwlock_timeout:1' $((10 * MINUTE_MS))
	run -0 rlock unlock --owner ours a
	run -1 rlock unlock --owner ours a
	fields_are mode some{1..1000}:0
	assert_equal "$(count_records a)" 1000
	assert_equal "$(redis hlen 'rlock_holds:{a}')" 2000
}

@test "the holds of a reader whose ids are not listed, as by an older version, are found, and removed" {
	run -0 rlock rlock --owner first --lease 1h a
	run -0 rlock rlock --owner second --lease 1h a
	run -0 rlock rlock --owner third --lease 1s a
	run -0 rlock rlock --owner third --lease 1s a
	redis hdel 'rlock_holds:{a}' second:0 >/dev/null
	redis hset 'rlock_holds:{a}' third:0 ' 00112233445566778899aabbccddeeff' >/dev/null
	run -0 rlock renew --owner second --lease 1h a
	run -0 rlock renew --owner first --lease 1h a
	wait_until 10 is_free '{a}:third:0:rwlock_timeout:2'
	run -0 rlock unlock --owner second a
	fields_are mode first:0
	assert_equal "$(redis hlen 'rlock_holds:{a}')" 1
	run -0 rlock unlock --owner first a
	no_keys
}

@test "a lock of 1,000 readers is broken by a few commands" {
	readers some 1000 $((60 * MINUTE_MS))
	redis config resetstat >/dev/null
	run -0 rlock unlock --force a
	assert [ "$(commands_in_scripts)" -lt 100 ]
	no_keys
}

# ---- readers that died ----

@test "readers that died are removed by the next that comes, and by the next that goes" {
	local owner
	run -0 rlock rlock --owner stays --lease 10m a
	for owner in d1 d2 d3 d4 d5; do
		rlock rlock --owner "$owner" --lease 1s a
	done
	wait_until 10 is_free '{a}:d5:0:rwlock_timeout:1'
	rlock rlock --owner comes --lease 10m a
	fields_are mode stays:0 comes:0
	assert_equal "$(count_records a)" 2
	rlock rlock --owner d6 --lease 1s a
	wait_until 10 is_free '{a}:d6:0:rwlock_timeout:1'
	run -0 rlock unlock --owner comes a
	fields_are mode stays:0
	assert_equal "$(count_records a)" 1
	run -0 rlock unlock --owner stays a
	no_keys
}

@test "many readers that died are removed, a hundred at a time, and keep no writer out" {
	readers lives 1 $((60 * MINUTE_MS))
	readers dead 250 -1000
	rlock rlock --owner comes --lease 1m a
	assert_equal "$(redis hlen a)" $((1 + 1 + 1 + 150))
	rlock unlock --owner comes a
	assert_equal "$(redis hlen a)" $((1 + 1 + 50))
	rlock rlock -n a -- true
	fields_are mode lives1:0
	assert_equal "$(count_records a)" 1
	redis flushall >/dev/null
	readers dead 50 -1000
	redis pexpire a $((60 * MINUTE_MS)) >/dev/null
	run -0 rlock wlock -n a -- true
	no_keys
}

@test "a reader that a Java service of before Redisson 4.4 has renewed is not removed before its timeout key ends" {
	readers stays 1 $((60 * MINUTE_MS))
	readers renewed 1 -1000
	redis set '{a}:renewed1:0:rwlock_timeout:1' 1 px $MINUTE_MS >/dev/null
	rlock rlock -n a -- true
	fields_are mode stays1:0 renewed1:0
	redis del '{a}:renewed1:0:rwlock_timeout:1' >/dev/null
	# It is looked at again when it should have ended.
	redis zadd 'rlock_ends:{a}' 1 renewed1:0 >/dev/null
	rlock rlock -n a -- true
	fields_are mode stays1:0
}

@test "a reader of ours that died is removed while Java's readers keep the lock" {
	redis hset a mode read >/dev/null
	java_reader $((60 * MINUTE_MS))
	rlock rlock --owner dead --lease 1s a
	wait_until 10 is_free '{a}:dead:0:rwlock_timeout:1'
	rlock rlock -n a -- true
	fields_are mode "$JAVA"
}

# ---- how long the lock lasts ----

@test "a lock of many readers lasts as long as the longest of those that stay" {
	readers some 40 $((60 * MINUTE_MS))
	rlock rlock -n -l 3h a -- true
	ttl_between $((59 * MINUTE_MS)) a $((60 * MINUTE_MS))
	ttl_between $((59 * MINUTE_MS)) 'rlock_holds:{a}' $((60 * MINUTE_MS))
	# A Java reader may be the one that lasts longest, and is found among them.
	java_reader $((90 * MINUTE_MS))
	rlock rlock -n -l 3h a -- true
	ttl_between $((89 * MINUTE_MS)) a $((90 * MINUTE_MS))
	# One that should last longest, and was lost, does not count.
	redis hdel a "$JAVA" >/dev/null
	redis zadd 'rlock_ends:{a}' 99999999999999 some7:0 >/dev/null
	redis del '{a}:some7:0:rwlock_timeout:1' >/dev/null
	rlock rlock -n -l 3h a -- true
	ttl_between $((59 * MINUTE_MS)) a $((60 * MINUTE_MS))
	assert_equal "$(redis hget a some7:0)" ''
}

@test "a reader under which Java has deleted the lock does not stand for a Java reader that came since" {
	rlock rlock --owner lost --lease 30m a
	redis del a >/dev/null
	redis hset a mode read >/dev/null
	java_reader $((90 * MINUTE_MS))
	rlock rlock --owner comes --lease 1h a
	readers some 17 $((60 * MINUTE_MS))
	run -0 rlock unlock --owner comes a
	ttl_between $((89 * MINUTE_MS)) a $((90 * MINUTE_MS))
	rlock rlock -n -l 3h a -- true
	ttl_between $((89 * MINUTE_MS)) a $((90 * MINUTE_MS))
}

@test "what says when readers end may be overwritten or be gone, and no holder loses a lock by that" {
	local spoil
	for spoil in 'set rlock_ends:{a} text' 'del rlock_ends:{a}'; do
		readers some 40 $((60 * MINUTE_MS))
		rlock rlock --owner long --lease 3h a
		# shellcheck disable=SC2086
		redis $spoil >/dev/null
		run -0 rlock renew --owner long --lease 3h a
		# shellcheck disable=SC2086
		redis $spoil >/dev/null
		run -0 rlock unlock --owner long a
		assert_output ''
		ttl_between $((59 * MINUTE_MS)) a $((60 * MINUTE_MS))
		assert_equal "$(redis hlen a)" 41
		redis flushall >/dev/null
	done
}
