#!/usr/bin/env bats
# Shells acquire and release a lock as fast as they can. Two commands that exclude each other must never run at the same time, and
# each call must get its turn. With a semaphore, no more commands may run than it has permits, each with a slot of its own,
# although calls are killed.

load chaos
load ../lib/proxying

SHELLS=8

# side_by_side COUNT FUNCTION [ARG...]: runs FUNCTION NUMBER ARG... COUNT times at the same time, and waits for all.
side_by_side() {
	local number lanes=()
	for ((number = 1; number <= $1; number++)); do
		"$2" "$number" "${@:3}" 3>&- &
		lanes+=($!)
	done
	wait "${lanes[@]}"
}

# contender NUMBER TURNS KIND...: a shell that acquires the lock TURNS times. NUMBER selects one of the kinds.
contender() {
	local i status kind=${*:3 + $1 % ($# - 2):1}
	for ((i = 0; i < $2; i++)); do
		status=0
		rlock "$(verb_of "$kind")" -w 60s "$NAME" -- overlap ledger "$(mode_of "$kind")" || status=$?
		[ "$status" = 0 ] || violated "$kind ended with $status"
	done
}

# contend NUMBER TURNS KIND...: divides the turns among the shells, and runs them at the same time.
contend() {
	local each=$((($2 + SHELLS - 1) / SHELLS))
	side_by_side $SHELLS contender "$each" "${@:3}"
	repeated "$(times enter | wc -l)"
	[ "$(times leave | wc -l)" = $((SHELLS * each)) ] || violated 'a turn did not come to its end'
	# Record the time from each end of a command to the next start.
	awk '$2 == "leave" { left = $1 } $2 == "enter" && left { print "time", int(($1 - left) / 1000); left = 0 }' ledger >>"$RECORD"
}

@test "contention: commands that exclude each other never run at the same time, and each call acquires the lock" {
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

# permit_caller NUMBER TURNS: acquires a permit TURNS times. One call in five is killed at a random moment, half of these together
# with its children. Each slot has a ledger of its own, in which `overlap` would detect two commands with the same slot.
permit_caller() {
	local turn pid allowed
	RANDOM=$((SEED + $1))
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

# contend_for_permits NUMBER TURNS: divides the turns among the callers. In the end all permits must be free again.
contend_for_permits() {
	local gap_ms
	side_by_side $CALLERS permit_caller $((($2 + CALLERS - 1) / CALLERS))
	must 'there are other slots' test "$(echo ledger-?)" = "$(seq -f 'ledger-%g' -s ' ' $PERMITS)"
	sort -n ledger-? >all
	repeated "$(times enter all | wc -l)"
	gap_ms=$(awk '$2 == "enter" { if (last && $1 - last > most) most = $1 - last; last = $1 } END { print int(most / 1000) }' all)
	took "$gap_ms"
	((gap_ms <= LIMIT_MS + SEM_LEASE_MS)) || violated "none went in for $gap_ms ms"
	# The permits of killed calls become free when their leases have ended and another call acquires permits.
	let_pass_ms $((SEM_LEASE_MS + 100))
	must 'a permit is not free' rlock sem -n --permits $PERMITS --take $PERMITS "$NAME" -- true
	must 'not all permits are free' redis_says $PERMITS get "$NAME"
	KEPT="$NAME|rlock_total:{$NAME}"
}

@test "contention, sem: no more commands run than there are permits, each with a slot of its own, although callers are killed" {
	SCALE=1 scenario 'contention, sem' 'between two that go in' 1 1 contend_for_permits "$(scaled 480)"
}

# ---- a lock that is released at the moment when another call begins to wait for it ----

# The release must wake the waiter, which then acquires the lock immediately. If the wake-up is lost, the waiter tries again after
# 2 s at the earliest. On a busy machine a wake-up can take longer than WOKEN_WITHIN_MS. So a later grant is also right if the
# waiter's messages show that it was woken, and if it has the lock within LATEST_MS, which is less than 2 s.

# Number of lanes that run at the same time: so few that no lane waits for a processor.
LANES=2
WOKEN_WITHIN_MS=200
LATEST_MS=1900
# The holder's command runs for a random time, at most this long, so that it ends while the waiter starts. In every second round a
# proxy delays the replies to the waiter by LATE_MS: then a release is more likely to come between two of the waiter's requests.
LEAVES_WITHIN_US=30000
LATE_MS=4

# was_woken_or_busy FILE: whether the messages in FILE show that the call did not wait, or that a release woke it.
was_woken_or_busy() {
	! grep -q ': waiting' "$1" || was_woken "$1"
}

# hand_over HOLDER WAITER: one round. The two are kinds that exclude each other.
hand_over() {
	local holder took_ms via=$RLOCK_URL
	((ROUND % 2)) || via=$DIRECT_URL
	draw 0 $LEAVES_WITHIN_US
	rm -f "$LEDGER" "$LEDGER.mark"
	# Set a short lease, so that a lost wake-up delays the test by 5 s at most.
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
	((took_ms <= WOKEN_WITHIN_MS)) || { ((took_ms < LATEST_MS)) && was_woken_or_busy stderr-waiter; } || violated "took $took_ms ms"
	! grep -q overlap "$LEDGER" || violated 'two inside'
}

# lane NUMBER ROUNDS HOLDER WAITER: runs ROUNDS rounds one after the other, with the same lock.
lane() {
	DIRECT_URL=$RLOCK_URL
	start_proxy || return
	proxy delay "$LATE_MS" || return
	for ((ROUND = 0; ROUND < $2; ROUND++)); do
		hand_over "${@:3}"
	done
}

@test "wake-up: a release wakes a waiter that begins to wait at the same moment" {
	local kinds
	for kinds in 'plain plain' 'fair fair' 'write read' 'read write'; do
		# shellcheck disable=SC2086
		SCALE=1 scenario "wake-up, ${kinds/ / to }" 'from leave to enter' $LANES $LANES lane "$(scaled $((250 / LANES)))" $kinds
	done
}
