#!/usr/bin/env bats
# A network that swallows everything, in one direction or both, from any moment of two cycles of renewals on: all of a
# command's processes are gone before the lease that protects it ends on the server, and a lost lock ends with 76.

# HOLDER, RENEWER and SINCE_US are for margins.bash.
# shellcheck disable=SC2034

load chaos
load margins
load ../lib/proxying

setup_file() {
	start_server --notify-keyspace-events Exg
	start_metronome
}

teardown_file() {
	stop_metronome
	stop_server
}

# By half of what is left after SIGKILL.
LATE_ANSWERS_MS=100

# fall_silent NUMBER KIND: the holder falls into a black hole, at any moment of two cycles of renewals. Every other
# one had its answers late: a holder that counts from these takes its lease for longer than it is.
fall_silent() {
	local ways=(both up down) way lease_s=1 end_us where
	begin_chance
	SINCE_US=$(now_us)
	way=${ways[$1 % 3]}
	(($1 % 10)) || lease_s=3
	start_proxy || return
	(($1 % 2)) || proxy delay $LATE_ANSWERS_MS >/dev/null || return
	holds holder "$2" "$LEDGER" -t ${lease_s}s || return
	HOLDER=$PID
	RENEWER=$(renewer_of "$HOLDER")
	draw 0 $((lease_s * 667))
	let_pass_ms "$DRAWN"
	begin_starving
	proxy blackhole on "$way" >/dev/null || return
	end_us=$(lease_end_us)
	((end_us > 0)) || return
	injected
	repeated
	where="$2, $way, a lease of $lease_s s, $DRAWN ms behind the start, cell $1, chance $CHANCE"
	check_margin "$lease_s" "$end_us" "$where" || return
	must_end 76 holder "$HOLDER" "$where"
	must "it was not said why: $where" grep -q "^rlock: $NAME: lock lost " said-holder
}

@test "black hole" {
	local kind
	compare_clocks
	listen_to_ends
	for kind in "${KINDS[@]}"; do
		begin_scenario "black hole, $kind"
		in_cells "$(scaled 60)" 8 fall_silent "$kind"
		show_excused
		end_scenario 'left of the lease' least
	done
}
