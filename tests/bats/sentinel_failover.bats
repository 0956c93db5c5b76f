#!/usr/bin/env bats
# bats file_tags=long
# Failovers by real sentinels, while a lock is held, waited for and released.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sentinels

setup_file() { start_failover_group 2; }

teardown_file() {
	stop_sentinels
	stop_servers
}

setup() {
	wait_until 60 is_group_ready
	export SERVER_SOCKET
	SERVER_SOCKET=$(socket_of "$(master)")
	directory_setup
}

teardown() {
	watchful_teardown
}

# replica_has NAME
replica_has() {
	on "$(replicas)" is_held "$1"
}

# is_replica NUMBER: and no master any more, for a while after the failover: what it releases meanwhile is held on by the new
# master until the lease ends.
is_replica() {
	has_role slave "$1"
}

# One that a failover has cut off when it should be woken looks by itself after 30 s at most.
waiter_ends_well() {
	wait_until 60 is_gone "$waiter"
	ended_with 0 "$waiter"
}

@test "a lock is held on through a failover, and a waiter gets it afterwards" {
	local old
	old=$(master)
	in_background rlock run -t 90s a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	wait_until 5 replica_has a
	in_background rlock run -w 60s a -- touch entered
	waiter=$PID
	wait_until 5 has_waiters a
	wait_until 40 has_left "$(master)"
	# So that it is less than what a renewal makes it.
	wait_until 10 on "$(master)" redis_says 1 pexpire a 75000
	wait_until 45 on "$(master)" is_renewed a 90000
	is_running "$holder"
	assert [ ! -e entered ]
	let_go
	ended_with 0 "$holder"
	waiter_ends_well
	assert [ -e entered ]
	wait_until 10 on "$(master)" no_keys
	wait_until 20 on "$old" redis ping
}

@test "a master that is killed: the lock is held on, a waiter gets it, a newcomer finds the new master" {
	local old new
	old=$(master) new=$(replicas)
	in_background rlock run -t 120s a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	wait_until 5 replica_has a
	in_background rlock fair -w 60s b -- true
	in_background rlock run -w 60s a -- touch entered
	waiter=$PID
	wait_until 5 has_waiters a
	crash_server "$old"
	run -0 rlock run -w 60s newcomer -- true
	# rlock follows the sentinel that has the latest configuration; the others hear of it later.
	wait_until 20 is_master "$new"
	is_running "$holder"
	let_go
	ended_with 0 "$holder"
	waiter_ends_well
	assert [ -e entered ]
	wait_until 10 on "$(master)" no_keys
	revive_replica "$old"
}

@test "the order of fair waiters outlasts a failover" {
	local old new party
	old=$(master) new=$(replicas)
	in_background rlock fair -t 120s a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	for party in 1 2 3; do
		in_background rlock fair -w 60s a -- sh -c "echo $party >>order"
		wait_until 5 has_in_queue a "$party"
	done
	wait_until 5 replica_has 'redisson_lock_queue:{a}'
	wait_until 40 has_left "$old"
	wait_until 60 is_replica "$old"
	let_go
	ended_with 0 "$holder"
	wait_until 60 has_lines order 3
	assert_equal "$(<order)" $'1\n2\n3'
	wait_until 10 on "$new" no_keys
}

@test "a permit is held on through a failover, and the next one is acquired from the new master" {
	local old holder waiter
	old=$(master)
	in_background rlock sem -t 120s --permits 1 a -- until_let_go
	holder=$PID
	wait_until 5 has_permit
	wait_until 5 on "$(replicas)" has_permit
	in_background rlock sem -w 60s --permits 1 a -- touch entered
	waiter=$PID
	wait_until 5 redis_says 1 zcard 'rlock_queue:{a}'
	wait_until 40 has_left "$old"
	run -75 rlock sem -n --permits 1 a -- true
	assert is_running "$holder"
	assert [ ! -e entered ]
	wait_until 60 is_replica "$old"
	let_go
	ended_with 0 "$holder"
	waiter_ends_well
	assert [ -e entered ]
	run -0 rlock sem -n --permits 1 a -- true
	wait_until 10 on "$(master)" all_permits_are_free || {
		on "$(master)" redis get a
		on "$(master)" redis zrange '{a}:timeout' 0 -1 withscores
		return 1
	}
	wait_until 20 on "$old" redis ping
}

has_permit() {
	redis_says 1 zcard '{a}:timeout'
}

all_permits_are_free() {
	redis_says 1 get a && redis_says 0 zcard '{a}:timeout'
}

@test "during a failover by sentinels each call acquires and releases its lock" {
	local worker
	for worker in 1 2 3 4; do
		in_background bash -c 'for turn in {1..150}; do rlock run -w 60s "lock-$0" -- true || { echo "$?" >>failed; exit 1; }; done; echo >>ended' "$worker"
	done
	wait_until 40 has_left "$(master)"
	wait_until 120 has_lines ended 4
	assert [ ! -e failed ]
}
