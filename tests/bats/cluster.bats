#!/usr/bin/env bats
# bats file_tags=long
# A cluster: the node that has the lock's slot is found, wherever it is by now.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/certificates
load ../lib/clusters

setup_file() { start_cluster 3 --cluster-node-timeout 15000; }

teardown_file() { stop_servers; }

setup() {
	flush_nodes
	directory_setup
}

teardown() {
	thaw_nodes
	watchful_teardown
}

# hold_at_its_node NAME [OPTION...]
hold_at_its_node() {
	in_background rlock run "${@:2}" "$1" -- until_let_go
	wait_until 5 at_node_of "$1" is_held "$1"
}

# ---- use ----

@test "locks of every node can be held, and are gone afterwards" {
	local name nodes=
	for name in a b c d e f; do
		run -3 rlock run "$name" -- bash -c '[ "$(redis-cli -s "$1" exists "$2")" = 1 ] && exit 3' - \
			"$(socket_of "$(node_of "$name")")" "$name"
		nodes+="$(node_of "$name")"
	done
	[[ $nodes = *1* && $nodes = *2* && $nodes = *3* ]]
	cluster_is_empty
}

@test "a semaphore is in one slot of a cluster, where its waiters are woken, and several names may be in several" {
	in_background rlock sem --permits 1 a -- until_let_go
	wait_until 5 at_node_of a is_held '{a}:timeout'
	in_background rlock sem --permits 1 a -- touch entered
	wait_until 5 at_node_of a is_held 'rlock_queue:{a}'
	let_go
	wait_until 5 file_exists entered
	all_ended_with 0
	run -0 rlock sem -n --permits 1 a b c -- printenv RLOCK_SLOT
	assert_output $'1\n1\n1'
	run -0 at_node_of a redis get a
	assert_output 1
	run -64 rlock sem --permits 1 'a{b' -- true
	flush_nodes
}

@test "a cluster remembers the last holder of each name, in the slot of the name" {
	local name
	run -3 rlock run --remember 1h --note both a b -- sh -c 'exit 3'
	run -4 rlock sem --permits 1 --remember 1h --note permit c -- sh -c 'exit 4'
	for name in a b c; do
		run -1 rlock status "$name"
		assert_line --regexp '^  last held by (both|permit) .*: its command ended with [34]$'
		assert_equal "$(at_node_of "$name" redis exists "rlock_last:{$name}")" 1
	done
}

@test "every verb that locks works on a cluster" {
	local verb name
	for name in a b c; do
		for verb in run lock fair rlock wlock; do
			run -0 rlock "$verb" "$name" -- true
		done
		run -0 bash -c 'rlock lock --pid $$ "$1" && rlock renew "$1" && rlock unlock "$1"' - "$name"
	done
	cluster_is_empty
}

@test "a lock is re-entered inside, in whatever order the nodes are named" {
	local backwards
	backwards=redis+cluster://$(tr ' ' '\n' <<<"$PORTS" | tac | sed 's/^/127.0.0.1:/' | paste -sd ,)
	run -0 rlock run a -- rlock run -n -u "$backwards" a -- true
	cluster_is_empty
}

@test "names with the same part in braces are locked together" {
	run -0 rlock run '{app}a' '{app}b' -- true
	hold_at_its_node '{app}b'
	run -75 rlock run -n '{app}a' '{app}b' -- true
	run -0 rlock run -n '{app}a' -- true
}

@test "a name whose braces would split its keys is refused before anything is sent" {
	local name
	for name in 'a}b' '{}a' 'a{b' '{' '}'; do
		run -64 rlock run "$name" -- touch begun
		assert_one_line '^rlock: .*: its braces put its keys into different slots of the cluster: take another name$'
	done
	for name in '{a}' 'a{b}c' '{a}{b}' 'a{b}}'; do
		run -0 rlock run "$name" -- true
	done
	assert [ ! -e begun ]
	cluster_is_empty
}

@test "a cluster's node under the URL of one server is refused with 78 and the URL that is right" {
	local node=2
	[ "$(node_of a)" != 2 ] || node=1
	run -78 rlock run -u "redis://127.0.0.1:$(port_of $node)" a -- touch begun
	assert_one_line '^rlock: a: denied by the server: this is a node of a cluster: its URL is redis\+cluster://HOST:PORT: MOVED .*$'
	assert [ ! -e begun ]
}

@test "one server under the URL of a cluster is a cluster of one" {
	BATS_FILE_TMPDIR=$BATS_TEST_TMPDIR/alone
	start_server_at_port
	BACKGROUND+=("$SERVER_PID")
	run -0 rlock run -u "redis+cluster://127.0.0.1:$PORT" a -- true
}

@test "a cluster is reached over TLS, and its certificate is verified" {
	export CERTIFICATES=$BATS_TEST_TMPDIR/certificates
	BATS_FILE_TMPDIR=$BATS_TEST_TMPDIR/alone
	certificates "$CERTIFICATES"
	choose_node_port
	start_tls_server_on "$PORT" server --cluster-enabled yes --tls-cluster yes --tls-replication yes
	BACKGROUND+=("$SERVER_PID")
	# shellcheck disable=SC2046
	redis cluster addslots $(seq 0 16383)
	wait_until 10 is_up
	run -0 rlock run -u "rediss+cluster://localhost:$PORT?cacert=$CERTIFICATES/ca.crt" a -- true
	run -78 rlock run -u "rediss+cluster://localhost:$PORT" a -- touch begun
	assert_one_line "^rlock: a: cannot connect to rediss://localhost:$PORT/0: .*certificate.*$"
	assert [ ! -e begun ]
}

is_up() {
	redis cluster info | grep -q '^cluster_state:ok'
}

# ---- nodes that are not there ----

@test "another node serves where one has gone" {
	choose_port
	took_less 4 rlock run -u "redis+cluster://127.0.0.1:$PORT,127.0.0.1:$(port_of 3)" a -- true
}

@test "another node serves where one has left the cluster" {
	local alone=$BATS_TEST_TMPDIR/alone
	choose_node_port
	(BATS_FILE_TMPDIR=$alone start_server --port "$PORT" --cluster-enabled yes --cluster-config-file nodes.conf &&
		echo "$SERVER_PID" >"$alone-pid")
	BACKGROUND+=("$(<"$alone-pid")")
	# This is the first one by its address.
	run -0 rlock run -w 10s -u "redis+cluster://127.0.0.1:$PORT,localhost:$(port_of 2)" a -- true
	cluster_is_empty
}

@test "rlock ends with 69 when no node can be reached" {
	choose_port
	run -69 rlock run -u "redis+cluster://127.0.0.1:$PORT" a -- touch begun
	assert_one_line "^rlock: a: cannot reach redis://127.0.0.1:$PORT/0: Connection refused$"
	assert [ ! -e begun ]
}

@test "another node serves where a frozen one comes first, within the wait time" {
	local name
	for name in a b c; do [ "$(node_of "$name")" = 1 ] || break; done
	# The first node of the URL is the first one by its address.
	freeze_server 1
	run -0 rlock run -w 20s --connect-timeout 0.5s \
		-u "redis+cluster://127.0.0.1:$(port_of 1),127.0.0.1:$(port_of 2),127.0.0.1:$(port_of 3)" "$name" -- true
}

# ---- waking ----

@test "a waiter is woken by a release" {
	hold_at_its_node a
	in_background rlock run a -- touch entered
	wait_until 5 is_waited_for a
	let_go
	wait_until 5 file_exists entered
	wait_until 5 cluster_is_empty
}

# The stranger's lease would last for 30 s.
@test "a waiter hears what an old Redisson publishes, on whatever node" {
	local node
	at_node_of a held_by_stranger a
	in_background rlock run a -- touch entered
	wait_until 5 is_waited_for a
	node=$(($(node_of a) % 3 + 1))
	at_node_of a redis del a
	on "$node" redis publish 'redisson_lock__channel:{a}' 0
	wait_until 5 file_exists entered
}

needs_shards() {
	redis command info ssubscribe | grep -qi ssubscribe || skip "the server has no channels of a slot"
}

@test "a waiter hears what a new Redisson publishes, in the slot alone" {
	needs_shards
	at_node_of a held_by_stranger a
	in_background rlock run a -- touch entered
	wait_until 5 is_waited_for a
	at_node_of a redis del a
	at_node_of a redis spublish 'redisson_lock__channel:{a}' 0
	wait_until 5 file_exists entered
}

@test "a release is published both ways, for old and new Redissons, of every kind" {
	local verb
	needs_shards
	in_background sh -c 'exec redis-cli -s "$0" ssubscribe "redisson_lock__channel:{a}" "redisson_rwlock:{a}" >heard' "$(socket_of "$(node_of a)")"
	in_background sh -c 'exec redis-cli -s "$0" subscribe "redisson_lock__channel:{a}" "redisson_rwlock:{a}" >heard-old' "$(socket_of $(($(node_of a) % 3 + 1)))"
	wait_until 5 has_lines heard 6
	wait_until 5 has_lines heard-old 6
	rlock run a -- true
	wait_until 5 has_lines heard 9
	wait_until 5 has_lines heard-old 9
	rlock wlock a -- true
	wait_until 5 has_lines heard 12
	wait_until 5 has_lines heard-old 12
	hold_at_its_node a
	rlock unlock --force a
	wait_until 5 has_lines heard 15
	wait_until 5 has_lines heard-old 15
}

@test "fair waiters of a cluster get in by their order" {
	local party
	in_background rlock fair a -- until_let_go
	holder=$PID
	wait_until 5 at_node_of a is_held a
	for party in 1 2 3; do
		in_background rlock fair -w 60s a -- sh -c "echo $party >>order"
		wait_until 5 at_node_of a has_in_queue a "$party"
	done
	let_go
	ended_with 0 "$holder"
	wait_until 20 has_lines order 3
	assert_equal "$(<order)" $'1\n2\n3'
	wait_until 5 cluster_is_empty
}

# ---- slots that move ----

@test "a lock whose slot moves is held on, renewed at its new node, and released there" {
	local from to
	from=$(node_of a) to=$(($(node_of a) % 3 + 1))
	hold_at_its_node a -t 3s
	holder=$PID
	in_background rlock run -w 60s a -- touch entered
	waiter=$PID
	wait_until 5 is_waited_for a
	begin_migration a "$from" "$to"
	move_keys a "$from" "$to"
	end_migration a "$from" "$to"
	wait_until 5 on "$to" is_renewed a 3000
	stays 4 is_running "$holder"
	assert [ ! -e entered ]
	let_go
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
	assert [ -e entered ]
	cluster_is_empty
}

@test "a held lock is renewed while its slot is on its way, at either node" {
	local from to
	from=$(node_of b) to=$(($(node_of b) % 3 + 1))
	hold_at_its_node b -t 2s
	begin_migration b "$from" "$to"
	stays 2.5 is_running "$PID"
	move_keys b "$from" "$to"
	stays 2.5 is_running "$PID"
	end_migration b "$from" "$to"
	let_go
	ended_with 0 "$PID"
	cluster_is_empty
}

@test "a new lock in a slot that is on its way is waited for, for 2 seconds without a wait time, too" {
	local from to
	from=$(node_of c) to=$(($(node_of c) % 3 + 1))
	begin_migration c "$from" "$to"
	run -69 rlock run -n c -- touch begun
	assert_one_line '^rlock: c: denied by the server: TRYAGAIN .*$'
	assert [ ! -e begun ]
	in_background rlock run -w 30s c -- true
	in_background rlock run '{c}1' -- true
	in_background rlock run -n '{c}2' -- true
	stays 0.3 is_running "$PID"
	end_migration c "$from" "$to"
	all_ended_with 0
	cluster_is_empty
}

@test "a fair lock with a waiter is released while its slot is on its way, and the waiter has its turn" {
	local from to holder
	from=$(node_of e) to=$(($(node_of e) % 3 + 1))
	in_background bash -c 'exec rlock fair -t 60s e -- until_let_go 2>said'
	holder=$PID
	wait_until 5 at_node_of e is_held e
	in_background rlock fair -w 60s e -- touch entered
	wait_until 5 at_node_of e is_held 'rlock_waiters:{e}'
	begin_migration e "$from" "$to"
	let_go
	ended_with 0 "$holder"
	assert [ ! -s said ]
	move_keys e "$from" "$to"
	end_migration e "$from" "$to"
	ended_with 0 "$PID"
	assert [ -e entered ]
	cluster_is_empty
}

@test "a release while its slot is on its way is delivered when that has ended" {
	local from to
	from=$(node_of d) to=$(($(node_of d) % 3 + 1))
	hold_at_its_node d
	begin_migration d "$from" "$to"
	let_go
	stays 1 is_running "$PID"
	move_keys d "$from" "$to"
	end_migration d "$from" "$to"
	ended_with 0 "$PID"
	cluster_is_empty
}

# ---- stop ----

@test "a holder is stopped at the node of its lock, also when that has moved to another" {
	local from to
	in_background rlock run -t 2s a -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	run -0 rlock stop -u "redis+cluster://127.0.0.1:$(port_of 1)" a
	ended_with 124
	in_background rlock run -t 2s a b c -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	from=$(node_of c)
	to=$((from % 3 + 1))
	begin_migration c "$from" "$to"
	move_keys c "$from" "$to"
	end_migration c "$from" "$to"
	run -0 rlock stop c
	ended_with 124
	cluster_is_empty
}

@test "a stop while the total of a semaphore is at another node already waits for the rest, and asks for no right" {
	local from to
	in_background rlock sem --permits 3 -t 2s g -- until_let_go
	wait_until 10 is_above "$PID" until_let_go
	from=$(node_of g)
	to=$((from % 3 + 1))
	begin_migration g "$from" "$to"
	move_key 'rlock_total:{g}' "$from" "$to"
	run -69 rlock stop g
	refute_output --partial 'may not'
	in_background rlock stop -w 20s g
	move_keys g "$from" "$to"
	end_migration g "$from" "$to"
	ended_with 0 "$PID"
	ended_with 124 "${BACKGROUND[0]}"
}
