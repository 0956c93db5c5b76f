# A Redis Cluster, whose nodes have numbers from 1. Sourced after usual.bash; its setup, teardown and teardown_file replace those.
#
#   start_cluster COUNT [OPTION...]   starts COUNT masters that share the slots; sets PORTS and RLOCK_URL
#   start_node NUMBER [OPTION...]     starts a node that is in no cluster yet; sets PORT
#   add_replica NUMBER MASTER         starts a node that is the replica of node MASTER
#   cluster_is_up                     whether all nodes report cluster_state:ok
#   flush_nodes                       waits until the cluster is up, then empties all nodes
#   id_of NUMBER                      prints the node's id
#   node_of NAME                      prints the number of the node that owns the lock's slot
#   at_node_of NAME COMMAND...        runs COMMAND with `redis` connected to that node
#   hold_at_its_node VERB NAME [OPTION...]   holds the lock until end_commands; sets PID
#   has_subscribed_waiter NAME        whether one rlock subscribes to the lock's channel at that node
#   cluster_is_empty                  whether no node has a key
#   begin_migration, move_keys, end_migration NAME FROM TO   migrate the lock's slot from one node to another, in three steps
#   move_key KEY FROM TO              migrates one key of a slot in migration

NODE_OPTIONS=(--cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 1500
	--repl-diskless-sync yes --repl-diskless-sync-delay 0)

# start_cluster COUNT [OPTION...]: PORTS is the list of all ports; RLOCK_URL names all nodes.
start_cluster() {
	local number nodes=()
	export PORTS=
	for ((number = 1; number <= $1; number++)); do
		start_node "$number" "${@:2}"
		nodes+=("127.0.0.1:$PORT")
	done
	redis-cli --cluster create "${nodes[@]}" --cluster-yes >/dev/null || return
	wait_until 20 cluster_is_up
	use_first_server
	RLOCK_URL=redis+cluster://$(IFS=,; echo "${nodes[*]}")
	export RLOCK_URL
}

# choose_node_port: sets PORT to a free port for a node. The node's cluster bus uses PORT + 10000, which must also be free, and below
# 32768: the kernel's ports for clients begin there.
choose_node_port() {
	while choose_port 22700 && is_listened_on $((PORT + 10000)); do :; done
}

start_node() {
	on_free_port choose_node_port start_server_number "$1" --port @PORT@ "${NODE_OPTIONS[@]}" "${@:2}"
	PORTS+="${PORTS:+ }$PORT"
}

add_replica() {
	start_node "$1"
	on "$1" redis cluster meet 127.0.0.1 "$(port_of "$2")" >/dev/null
	wait_until 20 knows_node "$1" "$(id_of "$2")"
	on "$1" redis cluster replicate "$(id_of "$2")" >/dev/null
}

# knows_node NUMBER ID: whether node NUMBER knows node ID as connected, and with slots.
knows_node() {
	on "$1" ask_server cluster nodes && [[ $'\n'$ANSWER =~ $'\n'$2\ [^$'\n']*\ connected\ [0-9] ]]
}

cluster_is_up() {
	local number ports
	read -ra ports <<<"$PORTS"
	for number in "${!ports[@]}"; do
		on $((number + 1)) ask_server cluster info && [[ $ANSWER = *cluster_state:ok* ]] || return
	done
}

flush_nodes() {
	local number
	wait_until 20 cluster_is_up
	for number in $(seq "$(server_count)"); do
		on "$number" ask_server flushall
	done
}

setup() {
	flush_nodes
	directory_setup
}

teardown() {
	thaw_nodes 2>/dev/null || :
	teardown_and_check_processes
}

teardown_file() { stop_servers; }

thaw_nodes() {
	local number
	for number in $(seq "$(server_count)"); do
		thaw_server "$number"
	done
}

id_of() {
	on "$1" redis cluster myid
}

node_of() {
	local slot at words ports number
	ask_server cluster keyslot "$1" && slot=$ANSWER
	# For each range of slots the reply has these words: first slot, last slot, address and port of the master, and then
	# others, which are skipped.
	ask_server cluster slots
	read -r -d '' -a words <<<"$ANSWER" || :
	read -ra ports <<<"$PORTS"
	for at in "${!words[@]}"; do
		if [ "${words[at]}" != 127.0.0.1 ] || ((slot < words[at - 2] || words[at - 1] < slot)); then
			continue
		fi
		for number in "${!ports[@]}"; do
			[ "${ports[number]}" != "${words[at + 1]}" ] || echo $((number + 1))
		done
		return
	done
}

at_node_of() {
	on "$(node_of "$1")" "${@:2}"
}

hold_at_its_node() {
	in_background rlock "$1" "${@:3}" "$2" -- run_until_ended
	wait_until 5 at_node_of "$2" is_held "$2"
}

has_subscribed_waiter() {
	[ "$(at_node_of "$1" redis pubsub numsub "redisson_lock__channel:{$1}" | tail -n 1)" = 1 ]
}

cluster_is_empty() {
	local number
	for number in $(seq "$(server_count)"); do
		on "$number" no_keys || return
	done
}

# The functions that migrate start no process where ask_server starts none: on a busy machine a process takes long to start, and
# a holder retries its release for 5 s only.

# find_migration NAME FROM TO: sets SLOT to the lock's slot, FROM_ID and TO_ID to the ids of the nodes, and TO_PORT to a port.
find_migration() {
	local ports
	read -ra ports <<<"$PORTS"
	TO_PORT=${ports[$3 - 1]}
	on "$2" ask_server cluster myid
	FROM_ID=$ANSWER
	on "$3" ask_server cluster myid
	TO_ID=$ANSWER
	ask_server cluster keyslot "$1"
	SLOT=$ANSWER
}

begin_migration() {
	find_migration "$@"
	on "$3" ask_server cluster setslot "$SLOT" importing "$FROM_ID"
	on "$2" ask_server cluster setslot "$SLOT" migrating "$TO_ID"
}

# move_keys NAME FROM TO: migrates all keys that the slot has at this moment.
move_keys() {
	local keys
	find_migration "$@"
	on "$2" ask_server cluster getkeysinslot "$SLOT" 100
	mapfile -t keys <<<"$ANSWER"
	[ -z "${keys[0]}" ] ||
		on "$2" ask_server migrate 127.0.0.1 "$TO_PORT" '' 0 5000 keys "${keys[@]}"
}

# end_migration NAME FROM TO: sets TO as the owner of the slot on all nodes.
end_migration() {
	local number ports
	find_migration "$@"
	read -ra ports <<<"$PORTS"
	on "$3" ask_server cluster setslot "$SLOT" node "$TO_ID"
	on "$2" ask_server cluster setslot "$SLOT" node "$TO_ID"
	for number in "${!ports[@]}"; do
		on $((number + 1)) ask_server cluster setslot "$SLOT" node "$TO_ID"
	done
}

move_key() {
	on "$2" redis migrate 127.0.0.1 "$(port_of "$3")" "$1" 0 5000 >/dev/null
}
