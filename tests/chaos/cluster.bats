#!/usr/bin/env bats
# Faults in a cluster of three masters with a replica each. A replica takes over from a master in one of four ways: by order; the
# master is killed; it is killed right after a grant that its replica does not have; or it is stopped until the replica is master.
# After each fault a slot moves to another master.
#
# failovers.bash says what is promised.

# This file sets FAULT_MS, which failovers.bash reads.

load chaos
load failovers
load ../lib/clusters

setup_file() {
	local number
	start_cluster 3
	for number in 1 2 3; do add_replica $((number + 3)) "$number"; done
}

setup() {
	local number
	wait_until 90 is_settled
	for number in {1..6}; do
		is_master "$number" || continue
		on "$number" redis flushall >/dev/null
		export SERVER_SOCKET
		SERVER_SOCKET=$(socket_of "$number")
	done
	directory_setup
}

server_of() { node_of "$1"; }

is_master() {
	[ "$(on "$1" redis role 2>/dev/null | head -n 1)" = master ]
}

# is_settled: whether there are three masters, all replicas are connected to theirs, and all nodes agree.
is_settled() {
	local number nodes masters=0
	cluster_is_up || return
	for number in {1..6}; do
		if is_master "$number"; then
			masters=$((masters + 1))
		else
			on "$number" redis info replication | grep -q '^master_link_status:up' || return
		fi
		nodes=$(on "$number" redis cluster nodes)
		[ "$(grep -c slave <<<"$nodes")" = 3 ] && ! grep -qE 'fail|disconnected|handshake|noaddr' <<<"$nodes" || return
	done
	((masters == 3))
}

# replica_of NUMBER: prints the number of the replica of that master.
replica_of() {
	local number port
	port=$(port_of "$1")
	for number in {1..6}; do
		[ "$(on "$number" redis role | sed -n '1p;3p' | paste -s -d ' ')" != "slave $port" ] || echo "$number"
	done
}

# fail_over_node NUMBER HOW: makes the replica of this master take over (HOW: ordered, killed, granting, frozen), and waits until
# it is the master. SERVER_SOCKET is then that of the new master. Sets FAULT_MS.
fail_over_node() {
	local replica
	replica=$(replica_of "$1")
	[ "$replica" ] || return
	SERVER_SOCKET=$(socket_of "$replica")
	FAULT_MS=$(boottime_ms)
	case $2 in
	ordered) on "$replica" redis cluster failover >/dev/null ;;
	killed) crash_server "$1" ;;
	granting) lose_grant "$1" "$replica" || return ;;
	frozen) freeze_server "$1" ;;
	esac
	wait_until 30 is_master "$replica" || return
	case $2 in
	killed | granting) start_server_number "$1" --port "$(port_of "$1")" "${NODE_OPTIONS[@]}" "${SERVER_OPTIONS[@]}" ;;
	frozen) thaw_server "$1" ;;
	esac
}

# move_slot NAME: moves the slot of this lock to another master.
move_slot() {
	local from to
	from=$(node_of "$1")
	for to in {1..6}; do
		[ "$to" = "$from" ] || ! is_master "$to" || break
	done
	begin_migration "$1" "$from" "$to" && move_keys "$1" "$from" "$to" || return
	# Move the keys that were created while the first pass moved the others.
	move_keys "$1" "$from" "$to"
	end_migration "$1" "$from" "$to"
}

# hit NUMBER: a master that has one of the locks fails over. Then the slot of lock "a" or "f" moves.
hit() {
	local names=(f a long) hows=(ordered granting killed frozen) how name
	wait_until 90 is_settled || return
	how=${hows[$1 % 4]} name=${names[$1 / 4 % 3]}
	[ "$how" != granting ] || name=late
	fail_over_node "$(node_of "$name")" "$how" && wait_until 90 is_settled || return
	if (($1 % 2)); then move_slot a; else move_slot f; fi
}

@test "cluster, failovers and migrations with --replicas 1: no two commands run at the same time, and fair waiters keep their order" {
	need_replicas {1..6}
	SCALE=1 scenario 'cluster, --replicas 1' "$WHAT_FAILOVERS_TOOK" 1 1 inject_faults "$(scaled 8)" hit a 'a b' 'c b a'
}
