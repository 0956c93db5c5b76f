#!/usr/bin/env bats
# Shells that take turns as fast as they can: never two inside that exclude each other, and each gets as many turns as
# it asks for. Of a semaphore no more are inside than it has permits, and none has a slot of another, though callers are killed.

load chaos
load ../lib/proxying

SHELLS=8

# side_by_side COUNT FUNCTION [ARG...]: FUNCTION NUMBER ARG..., so many at a time.
side_by_side() {
	local number lanes=()
	for ((number = 1; number <= $1; number++)); do
		"$2" "$number" "${@:3}" 3>&- &
		lanes+=($!)
	done
	wait "${lanes[@]}"
}

# contender NUMBER TURNS KIND...: the shells are of these kinds in turn.
contender() {
	local i status kind=${*:3 + $1 % ($# - 2):1}
	for ((i = 0; i < $2; i++)); do
		status=0
		rlock "$(verb_of "$kind")" -w 60s "$NAME" -- overlap ledger "$(mode_of "$kind")" || status=$?
		[ "$status" = 0 ] || violated "$kind ended with $status"
	done
}

# contend NUMBER TURNS KIND...
contend() {
	local each=$((($2 + SHELLS - 1) / SHELLS))
	side_by_side $SHELLS contender "$each" "${@:3}"
	repeated "$(times enter | wc -l)"
	[ "$(times leave | wc -l)" = $((SHELLS * each)) ] || violated 'a turn did not come to its end'
	# From one that leaves to the next that enters.
	awk '$2 == "leave" { left = $1 } $2 == "enter" && left { print "time", int(($1 - left) / 1000); left = 0 }' ledger >>"$RECORD"
}

@test "contention" {
	local kinds
	for kinds in plain fair write 'write read read read'; do
		# shellcheck disable=SC2086
		WITHOUT_FAULTS=yes SCALE=1 scenario "contention, $kinds" 'between two turns' 1 1 contend "$(scaled 2500)" $kinds
	done
}

PERMITS=3
CALLERS=12
SEM_LEASE_MS=3000
LIMIT_MS=8000

# permit_caller NUMBER TURNS: one in five of its rlocks is killed at a random moment, with luck together with all that it has
# started. Each goes in alone by its slot, so that there are never more inside than there are slots.
permit_caller() {
	local turn pid allowed
	RANDOM=$((CHANCE + $1))
	for ((turn = 0; turn < $2; turn++)); do
		draw 0 30000
		allowed=0
		rlock sem -w 60s -t "${SEM_LEASE_MS}ms" --permits $PERMITS "$NAME" -- \
			sh -c 'exec overlap "ledger-$RLOCK_SLOT" exclusive -f "$0"' "$DRAWN" 2>>stderr-sem &
		pid=$! CHILDREN=()
		if ((RANDOM % 5 == 0)); then
			let_some_pass 50
			((RANDOM % 2)) || find_children "$pid"
			kill -KILL "$pid" "${CHILDREN[@]}" && injected && allowed='0 137'
		fi
		must_end "$allowed" "$pid" sem
	done
}

# contend_for_permits NUMBER TURNS
contend_for_permits() {
	local gap_ms
	side_by_side $CALLERS permit_caller $((($2 + CALLERS - 1) / CALLERS))
	must 'there are other slots' test "$(echo ledger-?)" = "$(seq -f 'ledger-%g' -s ' ' $PERMITS)"
	sort -n ledger-? >all
	repeated "$(times enter all | wc -l)"
	gap_ms=$(awk '$2 == "enter" { if (last && $1 - last > most) most = $1 - last; last = $1 } END { print int(most / 1000) }' all)
	took "$gap_ms"
	((gap_ms <= LIMIT_MS + SEM_LEASE_MS)) || violated "none went in for $gap_ms ms"
	# The permits of the last ones that were killed come back with the next acquisition.
	let_pass_ms $((SEM_LEASE_MS + 100))
	must 'a permit is not free' rlock sem -n --permits $PERMITS --take $PERMITS "$NAME" -- true
	must 'not all permits are free' redis_says $PERMITS get "$NAME"
	KEPT="$NAME|rlock_total:{$NAME}"
}

@test "contention, sem" {
	SCALE=1 scenario 'contention, sem' 'between two that go in' 1 1 contend_for_permits "$(scaled 480)"
}

# ---- a lock that is released at the moment when another call begins to wait for it ----

# That one is woken: the lock goes to it at once, and not when the lease that it knows of ends, or when it looks by itself, which is after 2 s
# at the soonest. Where it took long, since processes had to wait for a processor, the waiter's messages tell whether it was woken; at the
# latest it has to be in sooner than without that.

# So few that they do not keep one another from the processor.
LANES=2
WOKEN_WITHIN_MS=200
LATEST_MS=1900
# The one leaves at most so long after the other was started. Half of the times what that one asks the server is
# answered late, so that each gap between two of its steps is wide.
LEAVES_WITHIN_US=30000
LATE_MS=4

# was_told SAID: it did not wait at all, or its wait ended by a message.
was_told() {
	! grep -q ': waiting' "$1" || was_woken "$1"
}

# hand_over HOLDER WAITER: the kinds, see excluded_kind; one round.
hand_over() {
	local holder took_ms via=$RLOCK_URL
	((ROUND % 2)) || via=$DIRECT_URL
	draw 0 $LEAVES_WITHIN_US
	rm -f "$LEDGER" "$LEDGER.mark"
	# With a short lease: a wake-up that was lost costs no more.
	RLOCK_URL=$DIRECT_URL start_contender holder "$1" "$LEDGER" "-f $DRAWN" -t 5s
	holder=$PID
	POLL_US=1000 wait_until 20 test -s "$LEDGER"
	RLOCK_URL=$via start_contender waiter "$2" "$LEDGER" '-f 0' -v -t 5s -w 20s
	must_end 0 "$PID" waiter
	must_end 0 "$holder" holder
	injected
	repeated
	took_ms=$((($(times enter | tail -n 1) - $(times leave | head -n 1)) / 1000))
	took $took_ms
	((took_ms <= WOKEN_WITHIN_MS)) || { ((took_ms < LATEST_MS)) && was_told stderr-waiter; } || violated "took $took_ms ms"
	! grep -q overlap "$LEDGER" || violated 'two inside'
}

# lane NUMBER ROUNDS HOLDER WAITER: rounds one after the other, under one name.
lane() {
	DIRECT_URL=$RLOCK_URL
	start_proxy || return
	proxy delay "$LATE_MS" || return
	for ((ROUND = 0; ROUND < $2; ROUND++)); do
		hand_over "${@:3}"
	done
}

@test "wake-up" {
	local kinds
	for kinds in 'plain plain' 'fair fair' 'write read' 'read write'; do
		# shellcheck disable=SC2086
		SCALE=1 scenario "wake-up, ${kinds/ / to }" 'from leave to enter' $LANES $LANES lane "$(scaled $((250 / LANES)))" $kinds
	done
}
