#!/usr/bin/env bats
# rlock check of a cluster, and of sentinels: each node is looked at.

# Each test is a subshell, and knows that.
# shellcheck disable=SC2030,SC2031,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/clusters

setup_file() { start_cluster 3 --cluster-node-timeout 15000; }

teardown_file() { stop_servers; }

setup() {
	flush_nodes
	directory_setup
}

teardown() {
	on 2 redis config set maxmemory 0 maxmemory-policy noeviction >/dev/null
	watchful_teardown
}

# finds LEVEL SUBJECT TEXT: a line of the output.
finds() {
	assert_line --regexp "^$1 +$2 +$3"
}

@test "check looks at each node of a cluster" {
	run -0 rlock check
	assert_equal "$(grep -c '^redis://.*: a node of the cluster$' <<<"$output")" 3
	assert_equal "$(grep -c '^ok *role *master, in a cluster$' <<<"$output")" 3
	cluster_is_empty
}

@test "one node of a cluster that deletes locks makes it unsound" {
	on 2 redis config set maxmemory-policy allkeys-lru >/dev/null
	on 2 redis config set maxmemory 1gb >/dev/null
	run -78 rlock check
	finds BAD eviction 'allkeys-lru deletes locks'
	assert_equal "$(grep -c '^ok *eviction *noeviction$' <<<"$output")" 2
	assert_equal "${lines[-1]}" "NOT SOUND: locks can't be relied on here, see eviction"
}

@test "one node of a cluster as the only server is not sound" {
	local port=${PORTS%% *}
	run rlock check -u "redis://127.0.0.1:$port" "$(name_at_node 1)"
	assert_equal "$status" 78
	finds BAD role "master, one node of a cluster: it denies most names: try: -u redis\\+cluster://127.0.0.1:$port\$"
}

@test "a user that may not list the nodes of a cluster is told so, with the right" {
	local number
	[[ $(on 1 redis info server) =~ redis_version:6 ]] && skip 'a right to one subcommand is new in Redis 7'
	for number in 1 2 3; do
		on "$number" redis acl setuser limited reset on '>secret' '~*' '&*' +@all '-cluster|slots' >/dev/null
	done
	run -0 rlock check -u "${RLOCK_URL/redis+cluster:\/\//redis+cluster://limited:secret@}"
	finds note rights '.*try: ACL SETUSER limited \\+cluster\\|slots$'
	finds note nodes 'not looked at: denied by the server'
}

# name_at_node NUMBER: a name that this node has.
name_at_node() {
	local name
	for name in a b c d e f g h; do
		[ "$(node_of "$name")" != "$1" ] || break
	done
	echo "$name"
}
