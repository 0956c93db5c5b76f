#!/usr/bin/env bats
# Java and rlock on the same cluster: each side is woken by the other, and no two that exclude each other are inside at
# a time.

# TURNS is for stress.bash, and SERVER_SOCKET for all helpers.
# shellcheck disable=SC2034

load interop
load turns
load woken
load stress
load ../lib/clusters

TURNS=200

setup_file() {
	start_cluster 3
	export SERVER_URL=$RLOCK_URL
	# What tests look at is the node of their lock.
	SERVER_SOCKET=$(socket_of "$(node_of a)")
	start_common_java
}

teardown_file() {
	stop_java
	stop_servers
}

setup() { interop_setup; }

teardown() {
	touch stop
	interop_teardown
}

# listeners KIND NAME: some versions of Redisson listen to messages of the whole cluster, others to those of a shard.
listeners() {
	local how sum=0
	for how in numsub shardnumsub; do
		((sum += $(redis pubsub "$how" "$(channel "$1" "$2")" | tail -n 1)))
	done
	echo "$sum"
}

nothing_is_left() {
	wait_until 5 cluster_is_empty
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
