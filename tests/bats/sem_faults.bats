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

# ---- processes and servers that fail ----

@test "a permit stays with its command when rlock is killed, and comes back when that ends" {
	hold_permit 1 a -t 3s
	kill -KILL "$PID"
	let_pass 4
	run -75 rlock sem -n --permits 1 a -- true
	let_go
	wait_until 2 is_whole a 1
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
