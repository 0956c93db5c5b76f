#!/usr/bin/env bats
# Java and rlock with the same sentinels, which name a master with a replica: each side wakes the other, and no two holders that
# exclude each other run at the same time.

load interop
load stress

setup_file() {
	start_masters 2
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	start_sentinels 3 "sentinel monitor $SERVICE 127.0.0.1 $(port_of 1) 2"
	export JAVA_URLS=$RLOCK_URL
	wait_until 30 is_ready_for_java
	start_common_java
}

teardown_file() {
	stop_java
	stop_sentinels
	stop_servers
}

# is_ready_for_java: whether all three sentinels know each other, and know the replica, and it is connected to the master.
# Redisson does not start with a single sentinel, or without a replica.
is_ready_for_java() {
	local number
	for number in 1 2 3; do
		[ "$(on_sentinel "$number" sentinel ckquorum "$SERVICE" 2>&1 | cut -d ' ' -f 1-2)" = 'OK 3' ] || return
		on_sentinel "$number" sentinel replicas "$SERVICE" | grep -qx 'master-link-status' || return
	done
	on 2 redis info replication | grep -q '^master_link_status:up'
}

# listeners KIND NAME: prints the number of subscribers, at the master and at its replica together: some versions of Redisson
# subscribe at the replica.
listeners() {
	local number sum=0
	for number in 1 2; do
		((sum += $(on "$number" redis pubsub numsub "$(channel "$1" "$2")" | tail -n 1)))
	done
	echo "$sum"
}

@test "each side is woken by the other, and holders that exclude each other never run at the same time" {
	all_are_woken
	all_play_well
}
