#!/usr/bin/env bats
# --cluster-map: a cluster whose nodes announce addresses that cannot be reached from here, as behind NAT or in containers.

load ../lib/usual
load ../lib/clusters

# Start nodes that announce the ports 1 to 3, where nothing listens. Set NODES to three names, one for each node.
setup_file() {
	local name number
	start_cluster 3 --cluster-node-timeout 15000
	export NODES=
	for number in 1 2 3; do
		for name in a b c d e f g h; do [ "$(node_of "$name")" != "$number" ] || break; done
		NODES+="${NODES:+ }$name"
	done
	announces_at_once || return 0
	for number in 1 2 3; do on "$number" redis config set cluster-announce-port "$number"; done
	wait_until 20 all_announce
}

announces_at_once() {
	! on 1 is_redis_6
}

setup() {
	flush_nodes
	directory_setup
	announces_at_once || skip 'the server announces another port only after a restart'
}

# all_announce: whether all nodes redirect clients only to the announced ports.
all_announce() {
	local number port
	for number in 1 2 3; do
		on "$number" ask_server cluster slots
		for port in $PORTS; do [[ $ANSWER != *$'\n'"$port"$'\n'* ]] || return 1; done
	done
}

map() {
	local number maps=()
	for number in 1 2 3; do maps+=("127.0.0.1:$number=127.0.0.1:$(port_of "$number")"); done
	(IFS=,; echo "${maps[*]}")
}

# one_node: prints the URL of one node, which redirects requests for names of the other nodes.
one_node() {
	echo "redis+cluster://127.0.0.1:$(port_of 1)"
}

@test "--cluster-map reaches the nodes of every slot although their announced addresses do not exist" {
	local number names
	read -ra names <<<"$NODES"
	run -69 rlock run -n -u "$(one_node)" "${names[1]}" -- touch begun
	assert_one_line "^rlock: ${names[1]}: cannot reach redis://127.0.0.1:2/0, which serves the lock's slot: Connection refused\$"
	assert [ ! -e begun ]
	for number in 1 2 3; do
		run -0 rlock run -u "$(one_node)" --cluster-map "$(map)" "${names[number - 1]}" -- \
			ask_redis "$(socket_of "$number")" exists "${names[number - 1]}"
		assert_output 1
	done
	run -0 rlock run -u "$(one_node)" --cluster-map "$(map)" "${names[@]}" -- true
	cluster_is_empty
}

@test "RLOCK_CLUSTER_MAP and the configuration file set the map, also for list and check, which query every node" {
	local names url
	read -ra names <<<"$NODES"
	url=$(one_node)
	unset RLOCK_URL
	printf '%s\n' "url = $url" "cluster-map = $(map)" >conf
	in_background rlock run --config conf "${names[2]}" -- run_until_ended
	wait_until 5 on 3 is_held "${names[2]}"
	RLOCK_CLUSTER_MAP=$(map) run -0 rlock list -u "$url"
	assert_line --regexp "^${names[2]} +plain "
	run -0 rlock check --config conf
	assert_line "redis://127.0.0.1:$(port_of 3)/0: a node of the cluster"
	end_commands
	# A user may set the variable for all calls. If a call uses another server, check must report that the map is not used.
	RLOCK_CLUSTER_MAP=$(map) run rlock check -u "redis://127.0.0.1:$(port_of 1)"
	assert_line --regexp "^note +cluster-map +.*: not used: no URL names a cluster"
}

@test "a held lock whose slot moves to another node is followed there, by ASK and by MOVED" {
	local names
	read -ra names <<<"$NODES"
	in_background rlock run -t 6s -u "$(one_node)" --cluster-map "$(map)" "${names[1]}" -- run_until_ended
	wait_until 5 on 2 is_held "${names[1]}"
	begin_migration "${names[1]}" 2 3
	move_keys "${names[1]}" 2 3
	# Without a renewal the command is terminated, and the lock released, after 4.4 s. Meanwhile node 2 redirects each renewal to
	# node 3: by ASK, and after the migration by MOVED.
	stays_true_for 5.2 is_running "$PID"
	end_migration "${names[1]}" 2 3
	stays_true_for 5.2 on 3 is_held "${names[1]}"
	end_commands
	ended_with 0
	cluster_is_empty
}
