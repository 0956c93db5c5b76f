#!/usr/bin/env bats
# No script blocks the server for long, however many waiters or holders a lock has: work per waiter or holder is done in slices.

load ../lib/usual
load ../lib/queue
load ../lib/permits

# queue_dead_waiters COUNT: adds COUNT rlock waiters without a process to the queue of "a". They joined 100 s ago, one microsecond after
# the other, and have counted as dead for a second.
queue_dead_waiters() {
	redis eval '
		local queue, deadlines, waiters = KEYS[1], KEYS[2], KEYS[3]
		local run, now = redis.call("INFO", "server"):match("run_id:(%w+)"), redis.call("TIME")
		local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
		local since_us = (now_ms - 100000) * 1000
		for i = 1, ARGV[1] do
			local owner = string.format("%.0f:%d", since_us, i)
			redis.call("RPUSH", queue, owner)
			redis.call("ZADD", deadlines, string.format("%.0f", now_ms + 3600000), owner)
			redis.call("HSET", waiters, owner, string.format("%.0f %.0f %s 0 a note", now_ms - 1000, since_us + i, run))
		end
		-- In a minute: a call that comes late on a busy machine would take the server for one that had stalled.
		redis.call("HSETNX", waiters, "seen", string.format("%.0f %.0f %s 0", now_ms + 60000, now_ms - 1, run))
		for _, key in ipairs(KEYS) do
			redis.call("PEXPIRE", key, 3600000)
		end' 3 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}' 'rlock_waiters:{a}' "$@" >/dev/null
}

@test "a call with -n removes 20,000 dead waiters in slices" {
	# Try again after 75: a call that gets no processor for 3 s removes no more waiters, since it believes that the server has stalled.
	for _ in 1 2; do
		queue_dead_waiters 20000
		redis config resetstat >/dev/null
		run rlock fair -n a -- true
		[ "$status" = 75 ] || break
		redis flushall >/dev/null
	done
	assert_equal "$status" 0
	assert_output ''
	assert_between 20 "$(calls_of evalsha)" 30
	# About five commands for each waiter are allowed, and no command that reads all waiters.
	assert [ "$(commands_in_scripts)" -lt 150000 ]
	no_keys
}

# readers NAME COUNT MS: adds COUNT readers to the lock, with the keys of rlock and a lease of MS. A negative MS: they expired that long ago.
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

@test "among 1,000 readers acquire, renew, release and a busy writer take as few commands as among 20" {
	local code words count few
	while read -r code words; do
		few=
		for count in 20 1000; do
			redis flushall >/dev/null
			readers some "$count" 3600000
			rlock read --owner ours --lease 10m a
			redis config resetstat >/dev/null
			# shellcheck disable=SC2086
			run "-$code" rlock $words
			assert_equal "$(calls_of hgetall) $(calls_of hvals) $(calls_of hkeys)" '0 0 0'
			few=${few:-$(commands_in_scripts)}
			# Allow three times as many commands, since on a busy machine a late reply can make rlock repeat a
			# request.
			assert_between 1 "$(commands_in_scripts)" $((3 * few))
			assert_between $((count + 1)) "$(redis hlen a)" $((count + 2))
			ttl_between 3500000 a 3600000
		done
	done <<-'EOT'
		0 read -n -l 30s a -- true
		0 read -n -l 2h a -- true
		75 write -n -v a -- true
		0 renew --owner ours --lease 10m a
		0 unlock --owner ours a
	EOT
	redis config resetstat >/dev/null
	run -0 rlock unlock --force a
	assert [ "$(commands_in_scripts)" -lt 100 ]
	no_keys
}

@test "many dead readers are removed, a hundred at a time, and do not exclude a writer" {
	readers lives 1 3600000
	readers dead 250 -1000
	rlock read --owner comes --lease 1m a
	assert_equal "$(redis hlen a)" $((1 + 1 + 1 + 150))
	rlock unlock --owner comes a
	assert_equal "$(redis hlen a)" $((1 + 1 + 50))
	rlock read -n a -- true
	assert_equal "$(redis hkeys a | sort | xargs)" 'lives1:0 mode'
	# Only two fields may be left: the hold record, and the list of the owner's hold ids.
	redis_says 2 hlen 'rlock_holds:{a}'
	rlock unlock --force a
	readers dead 50 -1000
	redis pexpire a 60000 >/dev/null
	run -0 rlock write -n a -- true
	no_keys
}

# permits_of_strangers COUNT MS: adds COUNT holders of one permit of "s" each, with a lease of MS; COUNT more permits are free. A negative
# MS: the leases expired that long ago.
permits_of_strangers() {
	redis eval '
		local now, left_ms = redis.call("TIME"), ARGV[2]
		local end_ms = now[1] * 1000 + math.floor(now[2] / 1000) + left_ms
		for i = 1, ARGV[1] do
			local id = string.format("%032x", i)
			redis.call("HSET", KEYS[2], id,
				string.format("owner%d:0 %.0f %.0f 1 process.sem.1.0123.4.%d.5+ a note", i, end_ms - 60000, end_ms, i))
			redis.call("ZADD", KEYS[3], string.format("%.0f", end_ms), id .. ":1")
			redis.call("ZADD", KEYS[4], string.format("%.0f", end_ms + 10000), id .. ":1")
		end
		redis.call("SET", KEYS[1], ARGV[1])
		redis.call("PEXPIRE", KEYS[2], 60000)
		redis.call("PEXPIRE", KEYS[3], 60000)' 4 s 'rlock_holds:{s}' 'rlock_ends:{s}' '{s}:timeout' "$@" >/dev/null
	redis config resetstat >/dev/null
}

@test "a call with -n reclaims as many of 5,000 expired permits as it needs, in slices" {
	permits_of_strangers 5000 -60000
	# Set a negative number of free permits, as --resize can do: after four slices there are then still too few.
	redis set s -3500 >/dev/null
	run -0 rlock sem --permits 1500 --take 1000 -n s -- true
	assert_output ''
	assert_between 5 "$(calls_of evalsha)" 8
	assert [ "$(commands_in_scripts)" -lt 300 ]
	has_free_permits s 1500
	has_held_permits s 0
}

@test "5,000 holders are asked to stop, and polled about once a second without reading all records" {
	permits_of_strangers 5000 60000
	redis config resetstat >/dev/null
	run -75 rlock stop -w 1ms -q s
	# The first call reads the records. The others write the stop requests, in slices.
	assert [ "$(calls_of evalsha)" -ge 6 ]
	assert_equal "$(redis hkeys 'rlock_holds:{s}' | grep -c ':stop$')" 5000
	redis config resetstat >/dev/null
	run -75 rlock stop -w 4s -q s
	# The records must have been read only once. Each poll after that checks each hold by ZSCORE.
	assert_equal "$(calls_of hgetall)" 1
	assert_between 5000 "$(calls_of zscore)" 30000
}

@test "among 5,000 permits a hold is renewed and released by a few commands, none of which reads all; unlock --force works in slices" {
	permits_of_strangers 5000 60000
	rlock sem --permits 10000 --owner one --lease 1m s
	redis config resetstat >/dev/null
	run -0 rlock renew --owner one --lease 2m s
	run -0 rlock unlock --owner one s
	assert_equal "$(calls_of hgetall)" 0
	assert [ "$(commands_in_scripts)" -lt 60 ]
	has_held_permits s 5000
	redis config resetstat >/dev/null
	run -0 rlock sem --permits 10000 s -- printenv RLOCK_SLOT
	assert [ "$(commands_in_scripts)" -lt 45 ]
	run -0 rlock unlock --force --holder owner7:0 s
	has_held_permits s 4999
	redis config resetstat >/dev/null
	run -0 rlock unlock --force s
	assert [ "$(commands_in_scripts)" -lt 100 ]
	has_all_permits s 10000
}
