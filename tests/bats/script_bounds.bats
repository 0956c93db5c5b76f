#!/usr/bin/env bats
# No script keeps the server from its other clients for long, however many waiters or holders a lock has: what takes a step
# for each of them is done in slices.

# PIDS is queue.bash's.
# shellcheck disable=SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/sharing
load ../lib/permits

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# since_us SECONDS: a time so long ago, by the server's clock.
since_us() {
	echo $((($(server_ms) - $1 * 1000) * 1000))
}

# usec_of COMMAND: how long the server has taken for it since its statistics began.
usec_of() {
	redis info commandstats | tr -d '\r' | awk -F '[:=,]' -v "command=cmdstat_$1" '$1 == command { n = $5 } END { print n + 0 }'
}

# ---- the queue of a fair lock ----

# has_tried PARTY TIMES
has_tried() {
	[ "$(grep -c 'asking to' "said-$1")" -ge "$2" ]
}

is_in_queue() {
	keys_of "$1" && [ -n "$(redis lpos "$QUEUE_KEY" "$2")" ]
}

@test "20,000 dead waiters are removed in slices by a call that does not wait, one after the other" {
	queue_strangers a 20000 "$(since_us 100)" -1000
	redis config resetstat >/dev/null
	run -0 rlock fair -n a -- true
	assert_output ''
	assert_between 20 "$(calls_of evalsha)" 30
	# Five commands for each of them, and none that looks at all of them.
	assert [ "$(commands_in_scripts)" -lt 150000 ]
	assert [ "$(usec_of lrem)" -lt $((1000000 * SLOWNESS)) ]
	no_keys
}

@test "a release that leaves dead waiters in front wakes the last waiter, which removes them and acquires the lock" {
	start_holder r0 fair a
	queue_waiter r1 a
	# The queue is new: for 2 seconds no waiter counts as dead.
	wait_until 10 has_tried r1 4
	wait_until 5 has_just_looked a r1
	queue_strangers a 3000 "$(since_us 100)" -1000 left
	let_leave r0
	is_inside_woken r1
	let_leave r1
	nothing_is_left
}

@test "a waiter that comes back to a long queue finds its position without a look at each waiter" {
	local owner
	start_holder r0 fair a
	queue_waiter r1 a
	owner=$(owner_in_queue a r1)
	queue_strangers a 3000 "$(since_us 100)" 3600000 left
	queue_strangers a 3000 "$(since_us -100)" 3600000
	keys_of a
	redis lrem "$QUEUE_KEY" 1 "$owner" >/dev/null
	redis zrem "$DEADLINES_KEY" "$owner" >/dev/null
	redis config resetstat >/dev/null
	wait_until 5 is_in_queue a "$owner"
	assert_equal "$(redis lpos "$QUEUE_KEY" "$owner")" 3000
	assert [ "$(commands_in_scripts)" -lt 300 ]
	redis del "$QUEUE_KEY" "$DEADLINES_KEY" "$WAITERS_KEY" >/dev/null
	let_leave r0
	let_leave r1
	nothing_is_left
}

@test "a waiter far back in a long queue is searched for now and then, and knows its position meanwhile" {
	start_holder r0 fair a
	queue_strangers a 5000 "$(since_us 100)" 3600000
	redis config resetstat >/dev/null
	queue_waiter r1 a
	wait_until 10 file_has said-r1 'position 5001 in the queue'
	wait_until 10 has_tried r1 4
	# Each try looks at the first hundred; the whole queue is searched at one of 51.
	assert [ "$(calls_of lpos)" -lt $((2 * $(grep -c 'asking to' said-r1))) ]
	keys_of a
	redis del "$QUEUE_KEY" "$DEADLINES_KEY" "$WAITERS_KEY" >/dev/null
	let_leave r0
	let_leave r1
	nothing_is_left
}

# ---- permits ----

# permits_of_strangers COUNT MS: so many holders of a permit of "s", of which as many are free, have a lease of so long; with
# a negative time it ended so long ago.
permits_of_strangers() {
	redis eval '
		local now, left_ms = redis.call("TIME"), ARGV[2]
		local end_ms = now[1] * 1000 + math.floor(now[2] / 1000) + left_ms
		for i = 1, ARGV[1] do
			local id = string.format("%032x", i)
			redis.call("HSET", KEYS[2], id, string.format("owner%d:0 %.0f %.0f 1 a note", i, end_ms - 60000, end_ms))
			redis.call("ZADD", KEYS[3], string.format("%.0f", end_ms), id .. ":1")
			redis.call("ZADD", KEYS[4], string.format("%.0f", end_ms + 10000), id .. ":1")
		end
		redis.call("SET", KEYS[1], ARGV[1])
		redis.call("PEXPIRE", KEYS[2], 60000)
		redis.call("PEXPIRE", KEYS[3], 60000)' 4 s 'rlock_holds:{s}' 'rlock_ends:{s}' '{s}:timeout' "$@" >/dev/null
	redis config resetstat >/dev/null
}

@test "5,000 permits whose leases have ended are reclaimed in slices, as many as a call that does not wait needs" {
	permits_of_strangers 5000 -60000
	# As after a resize: four slices leave too few free.
	redis set s -3500 >/dev/null
	run -0 rlock sem --permits 1500 --take 1000 -n s -- true
	assert_output ''
	assert_between 5 "$(calls_of evalsha)" 8
	assert [ "$(commands_in_scripts)" -lt 300 ]
	has_free s 1500
	has_held s 0
}

@test "5,000 permits are broken by a few commands, and those of one owner, too" {
	permits_of_strangers 5000 60000
	run -0 rlock unlock --force --holder owner7:0 s
	has_free s 5001
	has_held s 4999
	run -0 rlock unlock --force s
	assert [ "$(commands_in_scripts)" -lt 100 ]
	has_held s 0
	is_whole s 10000
}

@test "5,000 holders are asked to stop, and looked after without reading all records, and about once a second" {
	permits_of_strangers 5000 60000
	redis eval '
		local listed = redis.call("HGETALL", KEYS[1])
		for i = 1, #listed, 2 do
			redis.call("HSET", KEYS[1], listed[i], (string.gsub(listed[i + 1], "a note", "0123.4." .. i .. "+ a note")))
		end' 1 'rlock_holds:{s}' >/dev/null
	redis config resetstat >/dev/null
	run -75 rlock stop -w 1ms -q s
	assert_equal "$(redis hkeys 'rlock_holds:{s}' | grep -c ':stop$')" 5000
	redis hdel 'rlock_holds:{s}' "$(printf '%032x:stop' 7)" >/dev/null
	redis config resetstat >/dev/null
	run -75 rlock stop -w 2s -q s
	assert_equal "$(redis hkeys 'rlock_holds:{s}' | grep -c ':stop$')" 5000
	# All were read once; then each of them at each of these looks.
	assert_equal "$(calls_of hgetall)" 1
	assert_between 5000 "$(calls_of zscore)" 20000
}

@test "beside 5,000 permits the holder that is to stop is looked for once, and then asked for by its id" {
	local owner
	permits_of_strangers 5000 60000
	in_background rlock sem --permits 10000 -t 1s s -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	owner=$(redis hvals 'rlock_holds:{s}' | grep -oE "^[-0-9a-f]+:$PID ")
	redis config resetstat >/dev/null
	run -0 rlock stop --holder "${owner% }" s
	ended_with 124
	assert_equal "$(calls_of hgetall),$(calls_of zrange)" 1,1
	has_held s 5000
}

@test "beside 5,000 permits a hold is found, renewed and released by its owner in a few commands, and none that reads all" {
	permits_of_strangers 5000 60000
	rlock sem --permits 10000 --owner one --lease 1m s
	redis config resetstat >/dev/null
	run -0 rlock renew --owner one --lease 2m s
	run -0 rlock unlock --owner one s
	assert_equal "$(calls_of hgetall)" 0
	assert [ "$(commands_in_scripts)" -lt 60 ]
	has_held s 5000
	redis config resetstat >/dev/null
	run -0 rlock sem --permits 10000 s -- printenv RLOCK_SLOT
	assert [ "$(commands_in_scripts)" -lt 40 ]
	has_held s 5000
	# One hold of two is found by a look at all records, once the last one is released.
	rlock sem --permits 10000 --owner two --lease 1m s
	rlock sem --permits 10000 --owner two --lease 1m s
	run -0 rlock unlock --owner two s
	run -0 rlock unlock --owner two s
	run -1 rlock unlock --owner two s
	has_held s 5000
}
