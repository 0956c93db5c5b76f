#!/usr/bin/env bats
# bats file_tags=long
# A failover by real sentinels, while a lock is held and waited for.

# shellcheck disable=SC2154

load ../lib/usual
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

# One that a failover has cut off when it should be woken looks by itself after 30 s at most.
waiter_ends_well() {
	wait_until 60 is_gone "$waiter"
	ended_with 0 "$waiter"
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
