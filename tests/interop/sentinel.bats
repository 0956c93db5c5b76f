#!/usr/bin/env bats
# Java and rlock behind the same sentinels, that name a master with a replica: each side is woken by the other, and no
# two that exclude each other are inside at a time.

# TURNS is for stress.bash.
# shellcheck disable=SC2034

load interop
load turns
load woken
load stress
load ../lib/sentinels

TURNS=200

setup_file() {
	start_masters 2
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	start_sentinels 3 "sentinel monitor $SERVICE 127.0.0.1 $(port_of 1) 2"
	export SERVER_URL=$RLOCK_URL
	wait_until 30 is_ready_for_java
	start_common_java
}

teardown_file() {
	stop_java
	stop_sentinels
	stop_servers
}

setup() { interop_setup; }

teardown() {
	touch stop
	interop_teardown
}

# Redisson wants to know more than one sentinel, and the replica.
is_ready_for_java() {
	local number
	for number in 1 2 3; do
		[ "$(on_sentinel "$number" sentinel ckquorum "$SERVICE" 2>&1 | cut -d ' ' -f 1-2)" = 'OK 3' ] || return
		on_sentinel "$number" sentinel replicas "$SERVICE" | grep -qx 'master-link-status' || return
	done
	on 2 redis info replication | grep -q '^master_link_status:up'
}

# listeners KIND NAME: at the master or at its replica, as some versions of Redisson like it.
listeners() {
	local number sum=0
	for number in 1 2; do
		((sum += $(on "$number" redis pubsub numsub "$(channel "$1" "$2")" | tail -n 1)))
	done
	echo "$sum"
}

@test "plain locks: each side is woken by the other" {
	both_are_woken plain plain a
}

@test "fair locks: each side is woken by the other" {
	both_are_woken fair fair a
}

@test "readers are woken by the release of a write lock" {
	both_are_woken write read a
}

@test "writers are woken by the release of a read lock" {
	both_are_woken read write a
}

@test "plain locks: one at a time" {
	play plain a 100
	nothing_was_wrong
	one_at_a_time
	nothing_is_left
}

@test "fair locks: one at a time, in the order of the queue" {
	play fair a 10
	nothing_was_wrong
	one_at_a_time
	in_the_order_of_the_queue
	each_side_had 4
	nothing_is_left
}

@test "read and write locks: writers are alone" {
	play readwrite a 50
	nothing_was_wrong
	assert_equal "$(ls -d writer reader.* 2>/dev/null)" ''
	nothing_is_left
}
