#!/usr/bin/env bats
# bats file_tags=long
# Cluster nodes that die while a lock is held and waited for: a replica takes over, or the message names the node that does not
# answer.

load ../lib/usual
load ../lib/clusters

# With a node timeout of 4 s, the other nodes redirect clients to a dead node for some time. Node 4 is the replica of node 1, or
# node 1 that of node 4. Tests query node 2, which no test kills.
setup_file() {
	start_cluster 3 --cluster-node-timeout 4000
	add_replica 4 1
	wait_until 20 eval 'on 4 redis info replication | grep -q "^master_link_status:up"'
	wait_until 20 eval 'on 2 redis cluster slots | grep -q "^$(port_of 4)"'
	export SERVER_SOCKET
	SERVER_SOCKET=$(socket_of 2)
}

# Begin a test only when all nodes serve, since the test before may have restarted one. The nodes that tests kill refuse
# connections immediately, so the long limit delays no test.
setup() {
	wait_until 30 cluster_is_up
	directory_setup
	use_long_connect_timeout
}

# name_at_node NUMBER...: sets NAME to a name that one of these nodes owns, and NODE to that node.
name_at_node() {
	for NAME in a b c d e f g h; do
		NODE=$(node_of "$NAME")
		[[ " $* " != *" $NODE "* ]] || return 0
	done
}

@test "--replicas does not count the replicas of the node that the slot has left" {
	name_at_node 1 4
	# The replica has a second to confirm the lock, which a busy machine may miss.
	wait_until 5 rlock lock --owner ci-1 --lease 60s --replicas 1 "$NAME"
	begin_migration "$NAME" "$NODE" 2
	move_keys "$NAME" "$NODE" 2
	# The name belongs to node 2, which has no replica, so --replicas 1 must fail.
	run -69 rlock renew --owner ci-1 --replicas 1 "$NAME"
	assert_one_line "^rlock: $NAME: .*replicas.*$"
	run -0 rlock renew --owner ci-1 "$NAME"
	end_migration "$NAME" "$NODE" 2
	rlock unlock --owner ci-1 "$NAME"
	on 2 no_keys
}

@test "a dead node without a replica is named, both while other nodes redirect to it and when they report the cluster down" {
	local port number attempts
	port=$(port_of 3)
	name_at_node 3
	# Let the other nodes redirect to the killed node until both calls have ended, also on a busy machine.
	for number in 1 2 4; do on "$number" redis config set cluster-node-timeout 120000; done
	crash_server 3
	run -69 takes_less_than 10 rlock run -n "$NAME" -- touch begun
	assert_one_line "^rlock: $NAME: cannot reach redis://127.0.0.1:$port/0, which serves the lock's slot: Connection refused.*$"
	run -69 rlock status "$NAME"
	assert_output --partial "redis://127.0.0.1:$port/0, which serves the lock's slot: Connection refused"
	for number in 1 2 4; do on "$number" redis config set cluster-node-timeout 4000; done
	for number in 1 2 4; do wait_until 20 eval 'on "$number" redis cluster info | grep -q "^cluster_state:fail"'; done
	# rlock must retry for some time even without a wait time. A busy machine may need most of that time for one attempt.
	for _ in 1 2 3; do
		run -69 takes_less_than 10 rlock run -nv "$NAME" -- touch begun
		attempts=$(grep -c 'asking to acquire' <<<"$output")
		[ "$attempts" -le 2 ] || break
	done
	assert_line --regexp "^rlock: $NAME: no node of the cluster serves the lock: 127.0.0.1:$port does not answer the others; start it, or wait for a failover; give --wait: CLUSTERDOWN .*$"
	assert [ "$attempts" -gt 2 ]
	run -69 rlock check
	assert_output --partial "127.0.0.1:$port does not answer"
	assert [ ! -e begun ]
	start_server_number 3 --port "$port" "${NODE_OPTIONS[@]}" --cluster-node-timeout 4000
}

@test "a lock stays held and its waiter subscribed when the only node that the URL names has died" {
	local holder waiter url port number
	port=$(port_of 3)
	url=redis+cluster://127.0.0.1:$port
	# Let the other nodes serve their slots also while node 3 is down.
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
	# Shorten the TTL, so that the next renewal can be recognised by it.
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

@test "a lock stays held when its node is killed, and a waiter acquires it after the release" {
	local holder waiter new
	name_at_node 1 4
	new=$((5 - NODE))
	# The failover may take 20 s on a busy machine, and the command is terminated before the lease ends.
	in_background rlock run -t 60s "$NAME" -- run_until_ended
	holder=$PID
	wait_until 5 on "$NODE" is_held "$NAME"
	in_background rlock run -w 60s "$NAME" -- touch entered
	waiter=$PID
	wait_until 5 has_subscribed_waiter "$NAME"
	wait_until 5 on "$NODE" redis_says 1 wait 1 1000
	crash_server "$NODE"
	wait_until 30 eval '[ "$(on "$new" redis role | head -n 1)" = master ]'
	# Shorten the TTL, so that the next renewal can be recognised by it.
	wait_until 5 on "$new" redis_says 1 pexpire "$NAME" 50000
	wait_until 40 on "$new" is_renewed "$NAME" 60000
	is_running "$holder"
	assert [ ! -e entered ]
	end_commands
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	on "$new" no_keys
}
