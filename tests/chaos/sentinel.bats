#!/usr/bin/env bats
# Failovers by real sentinels, one after the other: half of them ordered, half of them because the master was killed, of
# which half right after a grant that no replica has.
#
# Promised is: no waiter hangs, and none ends with another status than 0 or, when a lock was lost, 76; the fair order of
# live waiters is kept; and with --replicas 1 and min-replicas-to-write 1 no two are inside. (Without them Redis may lose locks
# that it granted.)

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
	local number
	begin_scenario 'failover, --replicas 1'
	OPTIONS=(--replicas 1)
	SERVER_OPTIONS=(--min-replicas-to-write 1)
	for number in 1 2 3; do on "$number" redis config set min-replicas-to-write 1 >/dev/null; done
	suffer "$(scaled 8)" failover a
	end_scenario "$WHAT_FAILOVERS_TOOK"
}
