#!/usr/bin/env bats
# Five hundred wait for one plain or write lock, and one in five of them is killed at a random moment: as it waits, when
# it was just woken, with the lock, or on its way out. All others acquire the lock, one at a time, and none of those that were
# killed holds them up for long: the next tries of itself within 4 s, and a machine that is busy has twice that.

load chaos

setup_file() { start_server; }
teardown_file() { stop_server; }

CROWD=500
LIMIT_MS=8000

# crowd_waits COUNT
crowd_waits() {
	(($(redis zcard "rlock_queue:{$NAME}") >= $1))
}

# begin_crowd KIND COUNT: so many wait. Sets WAITERS.
begin_crowd() {
	local i
	WAITERS=()
	for ((i = 0; i < $2; i++)); do
		rlock "$(verb_of "$1")" -w 100s "$NAME" -- overlap "$LEDGER" exclusive -f 1000 2>>said 3>&- &
		WAITERS+=($!)
	done
	wait_until 60 crowd_waits "$2"
}

# kill_some: one in five, one after the other, while the others have their turns. Sets KILLED.
kill_some() {
	local i
	KILLED=()
	shuffle "${!WAITERS[@]}"
	for i in "${SHUFFLED[@]:0:${#WAITERS[@]}/5}"; do
		kill -KILL "${WAITERS[i]}" 2>/dev/null || continue
		KILLED[i]=yes
		injected
		read -r -t "0.00$((RANDOM % 10))" -u "$PAUSE" || :
	done
}

# crowd NUMBER KIND
crowd() {
	local i status gap_ms
	begin_chance
	in_background rlock "$(verb_of "$2")" "$NAME" -- until_let_go
	wait_until 20 is_held "$NAME"
	begin_crowd "$2" "$(scaled $CROWD)"
	let_go
	kill_some
	for i in "${!WAITERS[@]}"; do
		status=0
		wait "${WAITERS[i]}" || status=$?
		[ "${KILLED[i]:-}" ] || [ "$status" = 0 ] || violated "a waiter ended with $status (chance $CHANCE)"
		repeated
	done
	must 'a command runs on' overlap -g "$LEDGER" 3000
	count_overlaps "$LEDGER"
	(($(grep -c ' enter ' "$LEDGER") >= ${#WAITERS[@]} - ${#KILLED[@]})) || violated 'one did not get in'
	gap_ms=$(awk '$2 == "leave" { left = $1 } $2 == "enter" && left && $1 - left > most { most = $1 - left }
		END { print int(most / 1000) }' "$LEDGER")
	took "$gap_ms"
	((gap_ms <= LIMIT_MS)) || violated "no waiter acquired the lock for $gap_ms ms (chance $CHANCE)"
	must 'keys are left' wait_until 10 is_free "rlock_queue:{$NAME}"
	must 'keys are left' wait_until 10 is_forgotten
}

exec {PAUSE}<> <(:)

@test "queue" {
	begin_scenario 'queue'
	in_cells 1 1 crowd plain
	in_cells 1 1 crowd write
	end_scenario 'from one turn to the next'
}
