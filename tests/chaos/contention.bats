#!/usr/bin/env bats
# Eight shells that take turns as fast as they can: never two inside that exclude each other, and each gets
# as many turns as it asks for.

load chaos

setup_file() { start_server; }
teardown_file() { stop_server; }

SHELLS=8

# contender VERB MODE TURNS
contender() {
	local i status
	for ((i = 0; i < $3; i++)); do
		status=0
		rlock "$1" -w 60s a -- overlap ledger "$2" || status=$?
		[ "$status" = 0 ] || violated "$1 ended with $status"
	done
}

# contend KIND...: the shells are of these kinds in turn.
contend() {
	local each number kind lanes=()
	each=$((($(scaled 2500) + SHELLS - 1) / SHELLS))
	for ((number = 0; number < SHELLS; number++)); do
		kind=${*:1 + number % $#:1}
		contender "$(verb_of "$kind")" "$(mode_of "$kind")" "$each" 3>&- &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	repeated "$(grep -c ' enter ' ledger)"
	[ "$(grep -c ' leave ' ledger)" = $((SHELLS * each)) ] || violated 'a turn did not come to its end'
	count_overlaps ledger
	# From one that leaves to the next that enters.
	awk '$2 == "leave" { left = $1 } $2 == "enter" && left { print "time", int(($1 - left) / 1000); left = 0 }' \
		ledger >>"$RECORD"
	must 'keys are left' wait_until 3 no_keys
}

@test "contention, plain" {
	begin_scenario 'contention, plain'
	contend plain
	end_scenario 'between two turns'
}

@test "contention, fair" {
	begin_scenario 'contention, fair'
	contend fair
	end_scenario 'between two turns'
}

@test "contention, write" {
	begin_scenario 'contention, write'
	contend write
	end_scenario 'between two turns'
}

@test "contention, read and write" {
	begin_scenario 'contention, read and write'
	contend write read read read
	end_scenario 'between two turns'
}
