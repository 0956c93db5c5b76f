#!/usr/bin/env bats
# Failovers by real sentinels, one after the other: half of them by order, the others because the master was killed. Half of the
# killed masters die just after a grant that no replica has received. failovers.bash says what is promised.

# This file sets FAULT_MS, which failovers.bash reads.

load chaos
load failovers
load ../lib/sentinels

setup_file() { start_failover_group 3; }

teardown_file() {
	stop_sentinels
	stop_servers
}

setup() {
	wait_until 90 is_group_ready
	export SERVER_SOCKET
	SERVER_SOCKET=$(socket_of "$(master)")
	directory_setup
}

server_of() { master; }

# failover NUMBER: orders a failover, or kills the master, and waits for the new one. Sets FAULT_MS.
failover() {
	local old
	wait_until 90 is_group_ready || return
	old=$(master)
	FAULT_MS=$(boottime_ms)
	if (($1 % 2)); then
		if (($1 % 4 == 1)); then
			# shellcheck disable=SC2046
			lose_grant "$old" $(replicas) || return
		else
			crash_server "$old"
		fi
		wait_until 60 has_failed_over_from "$old" && revive_replica "$old" "${SERVER_OPTIONS[@]}"
	else
		wait_until 60 has_failed_over_from "$old"
	fi
}

@test "failover with --replicas 1: no two commands run at the same time, and fair waiters keep their order" {
	need_replicas 1 2 3
	SCALE=1 scenario 'failover, --replicas 1' "$WHAT_FAILOVERS_TOOK" 1 1 inject_faults "$(scaled 8)" failover a
}
