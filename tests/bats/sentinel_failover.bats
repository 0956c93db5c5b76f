#!/usr/bin/env bats
# bats file_tags=long
# Failovers by real sentinels, while a lock is held, waited for and released.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sentinels

setup_file() {
	start_masters 2
	on 2 redis replicaof 127.0.0.1 "$(port_of 1)"
	start_sentinels 3 "sentinel monitor $SERVICE 127.0.0.1 $(port_of 1) 2" \
		"sentinel down-after-milliseconds $SERVICE 1000" "sentinel failover-timeout $SERVICE 4000"
}

teardown_file() {
	stop_sentinels
	stop_servers
}

setup() {
	wait_until 60 is_ready
	export SERVER_SOCKET
	SERVER_SOCKET=$(socket_of "$(master)")
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
	watchful_teardown
}

# master: the number of the one that most sentinels name.
master() {
	local port
	port=$(for number in 1 2 3; do
		on_sentinel "$number" sentinel get-master-addr-by-name "$SERVICE" | tail -n 1
	done | sort | uniq -c | sort -rn | awk '{ print $2; exit }')
	[ "$port" = "$(port_of 1)" ] && echo 1 || echo 2
}

replica() {
	echo $((3 - $(master)))
}

# Each sentinel names the same master, knows the replica and the other sentinels, and the replica has what the master has.
is_ready() {
	local number role
	for number in 1 2 3; do
		[ "$(on_sentinel "$number" sentinel ckquorum "$SERVICE" 2>&1 | cut -d ' ' -f 1-2)" = 'OK 3' ] || return
		on_sentinel "$number" sentinel replicas "$SERVICE" | grep -qx 'master-link-status' || return
		! on_sentinel "$number" sentinel replicas "$SERVICE" | grep -qE 's_down|disconnected' || return
	done
	role=$(on "$(master)" redis role | head -n 1)
	[ "$role" = master ] && on "$(replica)" redis info replication | grep -q '^master_link_status:up'
}

# fails_over_to NUMBER: again, if the sentinels have given up an earlier one.
fails_over_to() {
	is_master "$1" || {
		on_sentinel 1 sentinel failover "$SERVICE" >/dev/null
		return 1
	}
}

# is_master NUMBER: the sentinels name it, and it is one.
is_master() {
	[ "$(master)" = "$1" ] && [ "$(on "$1" redis role | head -n 1)" = master ]
}

# replica_has NAME
replica_has() {
	on "$(replica)" is_held "$1"
}

@test "a lock is held on through a failover, and a waiter gets it afterwards" {
	local old new
	old=$(master) new=$(replica)
	in_background rlock run -t 9s a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	wait_until 5 replica_has a
	in_background rlock run -w 60s a -- touch entered
	waiter=$PID
	wait_until 5 has_waiters a
	wait_until 40 fails_over_to "$new"
	stays 6 is_running "$holder"
	assert [ ! -e entered ]
	let_go
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	on "$new" no_keys
	wait_until 20 on "$old" redis ping
}

@test "a master that is killed: the lock is held on, a waiter gets it, a newcomer finds the new master" {
	local old new
	old=$(master) new=$(replica)
	in_background rlock run -t 20s a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	wait_until 5 replica_has a
	in_background rlock fair -w 60s b -- true
	in_background rlock run -w 60s a -- touch entered
	waiter=$PID
	wait_until 5 has_waiters a
	crash_server "$old"
	run -0 rlock run -w 60s newcomer -- true
	is_master "$new"
	is_running "$holder"
	let_go
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	on "$new" no_keys
	# What comes back is a replica: the sentinels see to that.
	start_server_number "$old" --port "$(port_of "$old")" --repl-diskless-sync yes --repl-diskless-sync-delay 0
}

@test "the order of fair waiters outlasts a failover" {
	local new party
	new=$(replica)
	in_background rlock fair -t 20s a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	for party in 1 2 3; do
		in_background rlock fair -w 60s a -- sh -c "echo $party >>order"
		wait_until 5 has_queue "$party"
	done
	wait_until 5 replica_has 'redisson_lock_queue:{a}'
	wait_until 40 fails_over_to "$new"
	let_go
	ended_with 0 "$holder"
	wait_until 60 has_lines order 3
	assert_equal "$(<order)" $'1\n2\n3'
	wait_until 10 on "$new" no_keys
}

has_queue() {
	[ "$(redis llen 'redisson_lock_queue:{a}')" = "$1" ]
}

@test "locks that are taken and released while a failover is under way all succeed" {
	local new worker
	new=$(replica)
	for worker in 1 2 3 4; do
		in_background bash -c 'for turn in {1..150}; do rlock run -w 60s "lock-$0" -- true || { echo "$?" >>failed; exit 1; }; done; echo >>ended' "$worker"
	done
	wait_until 40 fails_over_to "$new"
	wait_until 60 has_lines ended 4
	assert [ ! -e failed ]
}
