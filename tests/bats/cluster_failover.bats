#!/usr/bin/env bats
# bats file_tags=long
# Failovers in a cluster, while a lock is held and waited for.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/clusters

setup_file() {
	start_cluster 3
	# The fourth is a replica of the first; they change places in the tests.
	add_replica 4 1
}

teardown_file() { stop_servers; }

setup() {
	local name
	cd "$BATS_TEST_TMPDIR" || return
	wait_until 60 is_ready
	for name in a b c d e f; do
		NAME=$name
		[[ $(node_of "$name") != [14] ]] || break
	done
	common_setup
	on "$(node_of "$NAME")" redis flushall >/dev/null
}

teardown() { watchful_teardown; }

# Of the first and the fourth node one is a master, and the other has what it has.
is_ready() {
	local number nodes
	cluster_is_up || return
	for number in 1 4; do
		[ "$(on "$number" redis role | head -n 1)" = master ] || break
	done
	[ "$(on $((5 - number)) redis role | head -n 1)" = master ] &&
		on "$number" redis info replication | grep -q '^master_link_status:up' || return
	for number in 1 2 3 4; do
		nodes=$(on "$number" redis cluster nodes)
		[ "$(grep -c slave <<<"$nodes")" = 1 ] && ! grep -qE 'fail|disconnected|handshake' <<<"$nodes" || return
	done
}

is_master() {
	[ "$(on "$1" redis role | head -n 1)" = master ]
}

# fails_over_to NUMBER: it is the master. Redis gives an order up after 5 s, and an order to a master does nothing.
fails_over_to() {
	for _ in 1 2 3 4; do
		on "$1" redis cluster failover >/dev/null || :
		! wait_until 6 is_master "$1" || return 0
	done
	return 1
}

# hold_and_wait: NAME is held, and its replica has it; a command that makes the file "entered" waits for it.
hold_and_wait() {
	OLD=$(node_of "$NAME")
	NEW=$((5 - OLD))
	in_background rlock run -t 60s "$NAME" -- until_let_go
	HOLDER=$PID
	wait_until 5 on "$OLD" is_held "$NAME"
	in_background rlock run -w 60s "$NAME" -- touch entered
	WAITER=$PID
	wait_until 5 has_waiter
	wait_until 5 replica_has_all
}

has_waiter() {
	[ "$(on "$OLD" redis pubsub numsub "redisson_lock__channel:{$NAME}" | tail -n 1)" = 1 ]
}

replica_has_all() {
	[ "$(on "$OLD" redis wait 1 1000)" = 1 ]
}

holds_on_until_let_go() {
	# So that it is less than what a renewal makes it.
	wait_until 5 on "$NEW" redis_says 1 pexpire "$NAME" 50000
	wait_until 45 on "$NEW" is_renewed "$NAME" 60000
	is_running "$HOLDER"
	assert [ ! -e entered ]
	let_go
	ended_with 0 "$HOLDER"
	ended_with 0 "$WAITER"
	assert [ -e entered ]
	on "$NEW" no_keys
}

@test "a lock is held on through a failover that was ordered, and a waiter gets it afterwards" {
	hold_and_wait
	fails_over_to "$NEW"
	holds_on_until_let_go
}

@test "a lock is held on when its node is killed, and a waiter gets it afterwards" {
	hold_and_wait
	crash_server "$OLD"
	wait_until 20 is_master "$NEW"
	holds_on_until_let_go
	start_server_number "$OLD" --port "$(port_of "$OLD")" "${NODE_OPTIONS[@]}"
}

@test "during the failover of a node each call acquires and releases its lock" {
	local worker
	OLD=$(node_of "$NAME")
	NEW=$((5 - OLD))
	for worker in 1 2 3 4; do
		in_background bash -c 'for turn in {1..100}; do rlock run -w 60s "{$0}$1" -- true || { echo "$?" >>failed; exit 1; }; done; echo >>ended' "$NAME" "$worker"
	done
	fails_over_to "$NEW"
	wait_until 240 has_lines ended 4
	assert [ ! -e failed ]
	wait_until 20 is_master "$NEW"
}

@test "replicas of the node that a lock has left do not count for it" {
	OLD=$(node_of "$NAME")
	rlock lock --owner ci-1 --lease 60s --replicas 1 "$NAME"
	begin_migration "$NAME" "$OLD" 2
	move_keys "$NAME" "$OLD" 2
	# The second node has no replica.
	run -69 rlock renew --owner ci-1 --replicas 1 "$NAME"
	assert_one_line "^rlock: $NAME: .*replicas.*$"
	run -0 rlock renew --owner ci-1 "$NAME"
	end_migration "$NAME" "$OLD" 2
	rlock unlock --owner ci-1 "$NAME"
	on 2 no_keys
}
