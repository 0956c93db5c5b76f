# A cluster: nodes with numbers from 1, each with all the slots that it should have. Sourced after helpers.bash.

NODE_OPTIONS=(--cluster-enabled yes --cluster-config-file nodes.conf --cluster-node-timeout 1500
	--repl-diskless-sync yes --repl-diskless-sync-delay 0)

# start_cluster COUNT [OPTION...]: so many masters with a third of the slots each. PORTS is the list of their ports, and
# RLOCK_URL names all of them.
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

# choose_node_port: choose_port for a node, which has a second port for the other nodes, 10000 above: not one of those
# that the kernel gives to clients, which begin at 32768.
choose_node_port() {
	while choose_port 22700 && is_listened_on $((PORT + 10000)); do :; done
}

# start_node NUMBER [OPTION...]: sets PORT; the node is in no cluster yet.
start_node() {
	on_free_port choose_node_port start_server_number "$1" --port @PORT@ "${NODE_OPTIONS[@]}" "${@:2}"
	PORTS+="${PORTS:+ }$PORT"
}

# add_replica NUMBER MASTER: one more node, which is the replica of that one.
add_replica() {
	start_node "$1"
	on "$1" redis cluster meet 127.0.0.1 "$(port_of "$2")" >/dev/null
	wait_until 20 knows_node "$1" "$(id_of "$2")"
	on "$1" redis cluster replicate "$(id_of "$2")" >/dev/null
}

# knows_node NUMBER ID: with its slots.
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

# flush_nodes: the cluster is up, and empty.
flush_nodes() {
	local number
	wait_until 20 cluster_is_up
	for number in $(seq "$(server_count)"); do
		on "$number" ask_server flushall
	done
}

# In the place of those of usual.bash.
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

# node_of NAME: the number of the node that has the lock's slot.
node_of() {
	local slot at words ports number
	ask_server cluster keyslot "$1" && slot=$ANSWER
	# Of each range: its first slot, its last one, and the address and port of its master.
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

# at_node_of NAME COMMAND [ARG...]: `redis`, and all that is made of it, speaks to the node of that lock.
at_node_of() {
	on "$(node_of "$1")" "${@:2}"
}

# hold_at_its_node VERB NAME [OPTION...]: until end_commands. Sets PID.
hold_at_its_node() {
	in_background rlock "$1" "${@:3}" "$2" -- run_until_ended
	wait_until 5 at_node_of "$2" is_held "$2"
}

# has_subscribed_waiter NAME: one rlock listens to the lock's channel, at its node.
has_subscribed_waiter() {
	[ "$(at_node_of "$1" redis pubsub numsub "redisson_lock__channel:{$1}" | tail -n 1)" = 1 ]
}

# cluster_is_empty: no node has a key of a lock.
cluster_is_empty() {
	local number
	for number in $(seq "$(server_count)"); do
		on "$number" no_keys || return
	done
}

# begin_migration NAME FROM TO: the lock's slot is on its way from one node to the other.
begin_migration() {
	local slot
	slot=$(redis cluster keyslot "$1")
	on "$3" redis cluster setslot "$slot" importing "$(id_of "$2")" >/dev/null
	on "$2" redis cluster setslot "$slot" migrating "$(id_of "$3")" >/dev/null
}

# move_keys NAME FROM TO: the keys that are in the slot now.
move_keys() {
	local slot keys
	slot=$(redis cluster keyslot "$1")
	mapfile -t keys < <(on "$2" redis cluster getkeysinslot "$slot" 100)
	[ "${#keys[@]}" -eq 0 ] || [ -z "${keys[0]}" ] ||
		on "$2" redis migrate 127.0.0.1 "$(port_of "$3")" '' 0 5000 keys "${keys[@]}" >/dev/null
}

# end_migration NAME FROM TO: all nodes know that the slot has moved.
end_migration() {
	local slot number to
	slot=$(redis cluster keyslot "$1")
	to=$(id_of "$3")
	for number in "$3" "$2" $(seq "$(server_count)"); do
		on "$number" redis cluster setslot "$slot" node "$to" >/dev/null
	done
}

# move_key KEY FROM TO: one of the keys in a slot that is on its way.
move_key() {
	on "$2" redis migrate 127.0.0.1 "$(port_of "$3")" "$1" 0 5000 >/dev/null
}
