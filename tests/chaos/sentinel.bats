#!/usr/bin/env bats
# Failovers by real sentinels, one after the other: half of them ordered, half of them because the master was killed, of
# which half right after a grant that no replica has.
#
# Promised is: no waiter hangs, and none ends with another status than 0 or, when a lock was lost, 76; the fair order of
# live waiters is kept where it was replicated. With --replicas 1 and min-replicas-to-write 1 no two are inside. Without
# them Redis may lose locks that it granted, and two may be inside for as long as the old holder takes to stop: that
# is counted, and is no violation.

# OPTIONS and FAULT_MS are for failovers.bash.
# shellcheck disable=SC2034

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

# demand_replicas COUNT: so many have to be there, or a master takes no write.
demand_replicas() {
	local number
	SERVER_OPTIONS=(--min-replicas-to-write "$1")
	for number in 1 2 3; do on "$number" redis config set min-replicas-to-write "$1" >/dev/null; done
}

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
		wait_until 60 has_left "$old" || return
		revive_replica "$old" "${SERVER_OPTIONS[@]}"
	else
		wait_until 60 has_left "$old"
	fi
}

@test "failovers with replicas that acknowledge" {
	begin_scenario 'failover, --replicas 1'
	OPTIONS=(--replicas 1)
	demand_replicas 1
	suffer "$(scaled 8)" failover a
	none_met
	end_scenario "$WHAT_FAILOVERS_TOOK"
}

@test "failovers without replicas that acknowledge" {
	begin_scenario 'failover, no replica asked'
	OPTIONS=()
	demand_replicas 0
	suffer "$(scaled 8)" failover a
	tell_meetings
	end_scenario "$WHAT_FAILOVERS_TOOK"
}
