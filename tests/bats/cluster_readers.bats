#!/usr/bin/env bats
# bats file_tags=long
# Read and write locks whose slot moves to another node of a cluster: the timeout keys of readers move one by one.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/scripting
load ../lib/clusters

setup_file() { start_cluster 3 --cluster-node-timeout 15000; }

teardown_file() { stop_servers; }

# The slot of a is at node FROM, and on its way to node TO once begin_migration was called.
setup() {
	flush_nodes
	directory_setup
	FROM=$(node_of a)
	TO=$((FROM % 3 + 1))
}

teardown() {
	local number
	for number in "$FROM" "$TO"; do
		on "$number" redis cluster setslot "$(redis cluster keyslot a)" stable >/dev/null
	done
	watchful_teardown
}

hold_to_read() {
	in_background rlock read "$@" a -- until_let_go
	wait_until 5 on "$FROM" is_held a
	TIMEOUT_KEY=$(on "$FROM" redis --scan --pattern '{a}:*:rwlock_timeout:1')
}

# move_all_but_timeouts: TO has the keys that requests name, and FROM the others.
move_all_but_timeouts() {
	local key
	for key in a 'rlock_holds:{a}' 'rlock_ends:{a}'; do
		move_key "$key" "$FROM" "$TO"
	done
}

complete_migration() {
	move_keys a "$FROM" "$TO"
	end_migration a "$FROM" "$TO"
}

# says WHAT NODE COMMAND [ARG...]: to a client that the other node has sent there.
says() {
	[ "$(printf 'asking\n%s\n' "${*:3}" | on "$2" redis | tail -n 1)" = "$1" ]
}

# stays_listed NODE: the release that is tried there changes nothing.
stays_listed() {
	stays 1 says 1 "$1" hlen 'rlock_holds:{a}'
	says 2 "$1" hlen a
}

@test "a reader whose timeout key has moved ahead of its lock is released when all keys have moved" {
	hold_to_read -t 60s
	begin_migration a "$FROM" "$TO"
	move_key "$TIMEOUT_KEY" "$FROM" "$TO"
	let_go
	stays_listed "$FROM"
	complete_migration
	ended_with 0 "$PID"
	cluster_is_empty
}

@test "a reader whose timeout key is still to come is released when it has come" {
	hold_to_read -t 60s
	begin_migration a "$FROM" "$TO"
	move_all_but_timeouts
	let_go
	stays_listed "$TO"
	complete_migration
	ended_with 0 "$PID"
	cluster_is_empty
}

@test "a reader whose timeout key is still to come is renewed when it has come" {
	hold_to_read -t 9s
	begin_migration a "$FROM" "$TO"
	move_all_but_timeouts
	# It is renewed after 3 seconds.
	stays 4 is_running "$PID"
	complete_migration
	wait_until 4 on "$TO" is_renewed a 9000
	let_go
	ended_with 0 "$PID"
	cluster_is_empty
}

@test "a reader that releases while the other one's timeout key is still to come does not free the lock" {
	local first other_key
	hold_to_read -t 60s
	first=$PID other_key=$TIMEOUT_KEY
	in_background sh -c 'exec rlock read -t 60s a -- sh -c "touch inside; comes_true test -e leave"'
	wait_until 5 file_exists inside
	begin_migration a "$FROM" "$TO"
	for TIMEOUT_KEY in $(on "$FROM" redis --scan --pattern '{a}:*:rwlock_timeout:1'); do
		[ "$TIMEOUT_KEY" = "$other_key" ] || move_key "$TIMEOUT_KEY" "$FROM" "$TO"
	done
	move_all_but_timeouts
	touch leave
	stays 1 says 3 "$TO" hlen a
	complete_migration
	ended_with 0 "$PID"
	is_running "$first"
	on "$TO" redis_says 2 hlen a
	let_go
	ended_with 0 "$first"
	cluster_is_empty
}

@test "a reader that is kept while its slot is on its way is kept when all keys have moved" {
	local where
	for where in ahead behind; do
		FROM=$(node_of a) TO=$(($(node_of a) % 3 + 1))
		rm -f let-go
		hold_to_read -t 60s --at-least 60s
		begin_migration a "$FROM" "$TO"
		if [ "$where" = ahead ]; then
			move_key "$TIMEOUT_KEY" "$FROM" "$TO"
			let_go
			stays_listed "$FROM"
		else
			move_all_but_timeouts
			let_go
			stays_listed "$TO"
		fi
		complete_migration
		ended_with 0 "$PID"
		run -0 on "$TO" redis hkeys a
		assert_line --regexp ':lingering:'
		on "$TO" redis_says 2 hlen a
		run -0 on "$TO" redis --scan --pattern '{a}:*:lingering:*:rwlock_timeout:1'
		assert_output
		flush_nodes
	done
}

@test "a writer that also reads, and releases the write while its slot is on its way, reads on" {
	rlock write --owner job --lease 60s a
	rlock read --owner job --lease 60s a
	begin_migration a "$FROM" "$TO"
	move_all_but_timeouts
	in_background rlock unlock --owner job --mode write a
	stays 1 says write "$TO" hget a mode
	says 3 "$TO" hlen a
	complete_migration
	ended_with 0 "$PID"
	on "$TO" redis_says read hget a mode
	on "$TO" redis_says 2 hlen a
	run -0 rlock unlock --owner job a
	cluster_is_empty
}
