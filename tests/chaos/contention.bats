#!/usr/bin/env bats
# Eight shells that take turns as fast as they can: never two inside that exclude each other, and each gets
# as many turns as it asks for. Of a semaphore no more are inside than it has permits, and none has a slot of another, though callers
# are killed.

load chaos

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
	must 'keys are left' wait_until 10 no_keys
}

@test "contention" {
	local kinds
	for kinds in plain fair write 'write read read read'; do
		begin_scenario "contention, $kinds"
		# shellcheck disable=SC2086
		contend $kinds
		rm -f ledger ledger.mark
		end_scenario 'between two turns'
	done
}

PERMITS=3
CALLERS=12
SEM_LEASE_MS=1000
LIMIT_MS=8000

# kill_tree PID: rlock, and with luck all that it has started. Fails when it has ended already.
kill_tree() {
	CHILDREN=()
	draw 0 1
	[ "$DRAWN" = 0 ] || children_of "$1"
	kill -KILL "$1" "${CHILDREN[@]}" 2>/dev/null
}

# permit_caller NUMBER TURNS: one in five of its rlocks is killed at a random moment. Each goes in alone by its slot, so that there
# are never more inside than there are slots.
permit_caller() {
	local turn pid status is_killed
	RANDOM=$((CHANCE + $1))
	for ((turn = 0; turn < $2; turn++)); do
		draw 0 30000
		rlock sem -w 60s -t "${SEM_LEASE_MS}ms" --permits $PERMITS a -- \
			sh -c 'exec overlap "slot-$RLOCK_SLOT" exclusive -f "$0"' "$DRAWN" 2>>said 3>&- &
		pid=$! status=0 is_killed=
		draw 1 5
		if [ "$DRAWN" = 1 ]; then
			draw 0 50
			let_pass_ms "$DRAWN"
			if kill_tree "$pid"; then
				injected
				is_killed=yes
			fi
		fi
		wait "$pid" || status=$?
		[ "$is_killed" ] || [ "$status" = 0 ] || violated "sem ended with $status (chance $CHANCE)"
	done
}

# is_whole COUNT: so many permits are free, and no other key is left.
is_whole() {
	redis_says "$1" get a && ! redis --raw keys '*{a}*' | grep -qvxF -e 'rlock_total:{a}' -e ''
}

@test "contention, sem" {
	local number each gap_ms lanes=()
	begin_scenario 'contention, sem'
	begin_chance
	each=$((($(scaled 480) + CALLERS - 1) / CALLERS))
	for ((number = 1; number <= CALLERS; number++)); do
		permit_caller "$number" "$each" 3>&- &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	must 'there are other slots' test "$(echo slot-?)" = "$(seq -f 'slot-%g' -s ' ' $PERMITS)"
	sort -n slot-? >ledger
	repeated "$(grep -c ' enter ' ledger)"
	count_overlaps ledger
	gap_ms=$(awk '$2 == "enter" { if (last && $1 - last > most) most = $1 - last; last = $1 }
		END { print int(most / 1000) }' ledger)
	took "$gap_ms"
	((gap_ms <= LIMIT_MS + SEM_LEASE_MS)) || violated "none went in for $gap_ms ms (chance $CHANCE)"
	# The permits of the last ones that were killed come back with the next acquisition.
	let_pass_ms $((SEM_LEASE_MS + 100))
	must 'a permit is not free' rlock sem -n --permits $PERMITS --take $PERMITS a -- true
	must 'keys are left' wait_until 10 is_whole $PERMITS
	end_scenario 'between two that go in'
}
