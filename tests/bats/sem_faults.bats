#!/usr/bin/env bats
# Permits whose holder is gone, whose replies are lost, and whose server is restarted, full, or stands still: each comes back,
# and once.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/permits
load ../lib/proxying
load ../lib/replicas

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	redis config set maxmemory 0 >/dev/null
	watchful_teardown
}

# ---- holders that are gone ----

@test "a dead holder's permit is back when its lease is over, by a waiter's own timer" {
	hold_permit 1 a -t 2s
	kill_holder "$PID"
	took_less 4 rlock sem --permits 1 a -- true
	is_whole a 1
}

@test "a permit of Java is reclaimed 5 s after its deadline, since the client's clock may be behind" {
	redis set a 1
	java_takes_permit a 0123456789abcdef "$(($(server_ms) + 1000))"
	run -75 rlock sem -n --permits 1 a -- true
	run -0 rlock sem --wait 20s --permits 1 a -- true
	is_whole a 1
}

@test "a Java client whose clock is ahead by less than 10 s reclaims no permit in its lease" {
	hold_permit 1 a -t 1m
	# What RPermitExpirableSemaphore.tryAcquire looks for, a second before the lease ends by its clock.
	assert_equal "$(redis zrangebyscore '{a}:timeout' 0 $(($(server_ms) + 59000 + 9000)))" ''
	let_go
	ended_with 0
}

@test "a permit that expired before its release is lost, and comes back once" {
	rlock sem --permits 1 --owner ci-1 --lease 1s a
	let_pass 1.1
	run -1 rlock renew --owner ci-1 --lease 1s a
	run -1 rlock unlock --owner ci-1 a
	run -0 rlock sem -n --permits 1 a -- true
	is_whole a 1
}

# ---- lost replies ----

@test "no permit is taken twice when the reply to its acquisition was lost" {
	start_proxy
	proxy drop-reply 'rlock_total:{a}'
	run -0 rlock sem --permits 2 --wait 5s a -- redis-cli -s "$SERVER_SOCKET" get a
	assert_output 1
	faults_happened
	is_whole a 2
}

@test "an acquisition whose reply was lost is granted again by a server that is full now" {
	local take
	for take in 1 2; do
		redis flushall >/dev/null
		rm -f granted
		start_proxy
		proxy hold-reply 'rlock_total:{a}'
		in_background rlock sem --permits 3 --take "$take" --wait 10s a -- touch granted
		wait_until 5 has_held a "$take"
		redis config set maxmemory 1 >/dev/null
		proxy cut
		ended_with 0 "$PID"
		redis config set maxmemory 0 >/dev/null
		file_exists granted
		is_whole a 3
		proxy quit
	done
}

@test "a permit comes back once when the reply to its release was lost" {
	start_proxy
	in_background rlock sem --permits 2 a -- until_let_go
	wait_until 5 has_free a 1
	proxy drop-reply 'redisson_sc:{a}!rlock_total:{a}'
	let_go
	ended_with 0
	faults_happened
	is_whole a 2
}

# ---- processes and servers that fail ----

@test "a permit stays held when the server stands still for less than its lease" {
	hold_permit 1 a -t 6s
	redis client pause 2000 all
	in_background rlock sem --permits 1 a -- touch entered
	local waiter=$PID
	wait_until 5 has_waiters a 1
	[ ! -e entered ]
	let_go
	ended_with 0 "$waiter"
	is_whole a 1
}

@test "a permit is lost when the server stands still for longer than its lease" {
	hold_permit 1 a -t 2s
	redis client pause 3000 all
	ended_with 76
	run -0 rlock sem -w 10s --permits 1 a -- true
	is_whole a 1
}

@test "a permit stays with its command when rlock is killed, and comes back when that ends" {
	hold_permit 1 a -t 3s
	kill -KILL "$PID"
	let_pass 4
	run -75 rlock sem -n --permits 1 a -- true
	let_go
	wait_until 2 is_whole a 1
}

@test "a permit is renewed by rlock when its renewer is killed" {
	hold_permit 1 a -t 1s
	wait_until 5 has_renewer "$PID"
	kill -KILL "$(renewer_of "$PID")"
	let_pass 2
	has_held a 1
	let_go
	ended_with 0
	is_whole a 1
}

@test "a permit that was granted to a waiter whose connections broke is taken once" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- true
	wait_until 5 has_waiters a 1
	redis client kill type pubsub >/dev/null
	redis client kill type normal skipme yes >/dev/null || :
	let_go
	all_ended_with 0
	is_whole a 1
}

@test "a server that lost its data loses the permit, and the waiter goes on waiting there" {
	hold_permit 1 a -t 1s
	local holder=$PID
	in_background rlock sem --permits 1 a -- touch got
	wait_until 5 has_waiters a 1
	redis flushall >/dev/null
	ended_with 76 "$holder"
	wait_until 10 file_exists got
	wait_until 5 is_whole a 1
}

@test "a server that is restarted without its data loses the permit, and the waiter goes on waiting there" {
	start_server_in one
	local server=$PID holder waiter
	export SERVER_SOCKET=$PWD/one/redis.sock RLOCK_URL=unix://$PWD/one/redis.sock
	export REDIS="ask_redis $SERVER_SOCKET"
	hold_permit 1 a -t 2s
	holder=$PID
	in_background rlock sem -w 60s --permits 1 a -- touch entered
	waiter=$PID
	wait_until 5 has_waiters a 1
	kill -KILL "$server"
	wait_until 5 is_gone "$server"
	start_server_in one
	ended_with 76 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	wait_until 5 is_whole a 1
}

@test "a full server grants no permit, and those that are held are renewed and released" {
	hold_permit 2 a -t 1s
	redis config set maxmemory 1 >/dev/null
	run -69 rlock sem -n --permits 2 a -- true
	let_pass 1.5
	has_held a 1
	let_go
	ended_with 0
	redis config set maxmemory 0 >/dev/null
	is_whole a 2
}
