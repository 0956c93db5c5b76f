#!/usr/bin/env bats
# bats file_tags=long
# A cluster of which a node is dead, without a replica: the message says which node does not answer.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/clusters

# Until the others have taken a node for dead, they lead to it.
TIMEOUT=(--cluster-node-timeout 4000)

setup_file() { start_cluster 3 "${TIMEOUT[@]}"; }

teardown_file() { stop_servers; }

setup() {
	local name
	flush_nodes
	directory_setup
	for name in a b c d e f; do
		NAME=$name
		NODE=$(node_of "$name")
		[ "$NODE" = 1 ] || break
	done
}

teardown() {
	watchful_teardown
	find_server "$NODE"
	! is_gone "$PID_OF_SERVER" || start_server_number "$NODE" --port "$(port_of "$NODE")" "${NODE_OPTIONS[@]}" "${TIMEOUT[@]}"
}

# is_down NUMBER: this node says that the cluster is down.
is_down() {
	on "$1" ask_server cluster info && [[ $ANSWER = *cluster_state:fail* ]]
}

# Without a wait time, too.
is_retried() {
	run -69 rlock run -nv "$NAME" -- touch begun
	assert [ "$(grep -c 'asking to acquire' <<<"$output")" -gt 2 ]
}

@test "the node that has the lock's slot, and does not answer, is named, while the others lead to it" {
	local port
	port=$(port_of "$NODE")
	crash_server "$NODE"
	run -69 took_less 4 rlock run -n "$NAME" -- touch begun
	assert_one_line "^rlock: $NAME: cannot reach redis://127.0.0.1:$port/0, which serves the lock's slot: Connection refused.*$"
	run -69 rlock status "$NAME"
	assert_output --partial "redis://127.0.0.1:$port/0, which serves the lock's slot: Connection refused"
	assert [ ! -e begun ]
	is_retried
}

@test "without a wait time a node that is dead for a moment only is tried again" {
	needs_refuse
	run -0 refuse refused rlock connect ECONNREFUSED 2 rlock run -n -u "redis+cluster://127.0.0.1:$(port_of 1)" "$NAME" -- touch begun
	assert [ -s refused ]
	assert [ -e begun ]
}

@test "the node that does not answer is named where the others only say that the cluster is down" {
	local port
	port=$(port_of "$NODE")
	crash_server "$NODE"
	wait_until 20 is_down 1
	run -69 took_less 4 rlock run -n "$NAME" -- touch begun
	assert_one_line "^rlock: $NAME: no node of the cluster serves the lock: 127.0.0.1:$port does not answer the others: start it, or give --wait for a failover: CLUSTERDOWN .*$"
	run -69 rlock check
	assert_output --partial "127.0.0.1:$port does not answer"
	assert [ ! -e begun ]
	is_retried
}
