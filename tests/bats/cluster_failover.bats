#!/usr/bin/env bats
# bats file_tags=long
# Nodes of a cluster that die: a replica takes over, while a lock is held and waited for, or the message says which node does
# not answer.

load ../lib/usual
load ../lib/clusters

# Until the others have taken a node for dead, they lead to it. The fourth is the replica of the first, or the other way round.
# What tests ask is the second, which none of them kills.
setup_file() {
	start_cluster 3 --cluster-node-timeout 4000
	add_replica 4 1
	wait_until 20 eval 'on 4 redis info replication | grep -q "^master_link_status:up"'
	wait_until 20 eval 'on 2 redis cluster slots | grep -q "^$(port_of 4)"'
	export SERVER_SOCKET
	SERVER_SOCKET=$(socket_of 2)
}

# A test begins only when all nodes serve: the test before it may have restarted one.
setup() {
	wait_until 30 cluster_is_up
	directory_setup
}

# name_at_node NUMBER...: sets NAME to one that one of these nodes has, and NODE to that.
name_at_node() {
	for NAME in a b c d e f g h; do
		NODE=$(node_of "$NAME")
		[[ " $* " != *" $NODE "* ]] || return 0
	done
}

@test "replicas of the node that a lock has left do not count for it" {
	name_at_node 1 4
	rlock lock --owner ci-1 --lease 60s --replicas 1 "$NAME"
	begin_migration "$NAME" "$NODE" 2
	move_keys "$NAME" "$NODE" 2
	# The second node has no replica.
	run -69 rlock renew --owner ci-1 --replicas 1 "$NAME"
	assert_one_line "^rlock: $NAME: .*replicas.*$"
	run -0 rlock renew --owner ci-1 "$NAME"
	end_migration "$NAME" "$NODE" 2
	rlock unlock --owner ci-1 "$NAME"
	on 2 no_keys
}

@test "a node without a replica that does not answer is named, while the others lead to it, and when they say that all is down" {
	local port
	port=$(port_of 3)
	name_at_node 3
	crash_server 3
	run -69 takes_less_than 10 rlock run -n "$NAME" -- touch begun
	assert_one_line "^rlock: $NAME: cannot reach redis://127.0.0.1:$port/0, which serves the lock's slot: Connection refused.*$"
	run -69 rlock status "$NAME"
	assert_output --partial "redis://127.0.0.1:$port/0, which serves the lock's slot: Connection refused"
	wait_until 20 eval 'on 2 redis cluster info | grep -q "^cluster_state:fail"'
	run -69 takes_less_than 10 rlock run -nv "$NAME" -- touch begun
	assert_line --regexp "^rlock: $NAME: no node of the cluster serves the lock: 127.0.0.1:$port does not answer the others: start it, or wait for a failover: give --wait: CLUSTERDOWN .*$"
	# Without a wait time, too, it is tried again.
	assert [ "$(grep -c 'asking to acquire' <<<"$output")" -gt 2 ]
	run -69 rlock check
	assert_output --partial "127.0.0.1:$port does not answer"
	assert [ ! -e begun ]
	start_server_number 3 --port "$port" "${NODE_OPTIONS[@]}" --cluster-node-timeout 4000
}

@test "a lock is held on, and waited for, at its node when the only node of the URL has died" {
	local holder waiter url port number
	port=$(port_of 3)
	url=redis+cluster://127.0.0.1:$port
	# So that the others serve without it.
	for number in 1 2 3 4; do on "$number" redis config set cluster-require-full-coverage no; done
	name_at_node 2
	in_background rlock run -t 9s -u "$url" "$NAME" -- run_until_ended
	holder=$PID
	wait_until 5 is_held "$NAME"
	in_background rlock run -w 60s -u "$url" "$NAME" -- touch entered
	waiter=$PID
	wait_until 5 has_subscribed_waiter "$NAME"
	crash_server 3
	redis client kill type normal >/dev/null
	redis client kill type pubsub >/dev/null
	# So that it is less than what a renewal makes it.
	redis_says 1 pexpire "$NAME" 8000
	wait_until 8 is_renewed "$NAME" 9000
	wait_until 8 has_subscribed_waiter "$NAME"
	is_running "$holder"
	end_commands
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	start_server_number 3 --port "$port" "${NODE_OPTIONS[@]}" --cluster-node-timeout 4000
	for number in 1 2 3 4; do on "$number" redis config set cluster-require-full-coverage yes; done
}

@test "a lock is held on when its node is killed, and a waiter acquires it afterwards" {
	local holder waiter new
	name_at_node 1 4
	new=$((5 - NODE))
	in_background rlock run -t 30s "$NAME" -- run_until_ended
	holder=$PID
	wait_until 5 on "$NODE" is_held "$NAME"
	in_background rlock run -w 60s "$NAME" -- touch entered
	waiter=$PID
	wait_until 5 has_subscribed_waiter "$NAME"
	on "$NODE" redis_says 1 wait 1 1000
	crash_server "$NODE"
	wait_until 30 eval '[ "$(on "$new" redis role | head -n 1)" = master ]'
	# So that it is less than what a renewal makes it.
	wait_until 5 on "$new" redis_says 1 pexpire "$NAME" 20000
	wait_until 25 on "$new" is_renewed "$NAME" 30000
	is_running "$holder"
	assert [ ! -e entered ]
	end_commands
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	on "$new" no_keys
}
