#!/usr/bin/env bats
# Java and rlock on the same cluster: each side wakes the other, and no two holders that exclude each other run at the same time.

load ../lib/clusters
load interop
load stress

setup_file() {
	start_cluster 3
	export JAVA_URLS=$RLOCK_URL
	# Let the helpers query the node that has the lock "a".
	SERVER_SOCKET=$(socket_of "$(node_of a)")
	export SERVER_SOCKET
	start_common_java
}

# listeners KIND NAME: prints the number of subscribers of the lock's channel. Some versions of Redisson use SUBSCRIBE, others
# SSUBSCRIBE: add both.
listeners() {
	local how sum=0
	for how in numsub shardnumsub; do
		((sum += $(redis pubsub "$how" "$(channel "$1" "$2")" | tail -n 1)))
	done
	echo "$sum"
}

nothing_is_left() {
	wait_until 20 cluster_is_empty
}

@test "each side is woken by the other, and holders that exclude each other never run at the same time" {
	all_are_woken
	all_play_well
}
