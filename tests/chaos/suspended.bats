#!/usr/bin/env bats
# Processes that stop for longer than a lease. If only rlock or only its renewer stops, the other one keeps the lock. If both stop, the
# command is terminated as soon as they continue, and the next holder keeps its lock. Also, a wall clock that is set must change nothing.

load chaos
load ../lib/clocks

# hold_for_a_while KIND: starts a holder with a short lease, and lets it renew for a random time, two intervals at most. Sets HOLDER,
# RENEWER.
hold_for_a_while() {
	start_holder_family holder "$1" "$LEDGER" -t 4s || return
	wait_until 20 has_renewer "$HOLDER" || return
	RENEWER=${RENEWERS[0]}
	let_some_pass 2667
}

# is_stopped_or_gone PID: whether the process is stopped or has ended: rlock kills a renewer that stays stopped.
is_stopped_or_gone() {
	is_stopped "$1" || is_gone "$1"
}

# suspend NUMBER WHICH KIND: a cell in which rlock or its renewer stops, and the other process keeps the lock.
suspend() {
	local suspended
	hold_for_a_while "$3" || return
	[ "$2" = rlock ] && suspended=$HOLDER || suspended=$RENEWER
	kill -STOP "$suspended"
	wait_until 20 is_stopped_or_gone "$suspended" || return
	must_keep_lock "$3" 4200 5200
	kill -CONT "$suspended" 2>/dev/null || :
	finish_contender holder
	must_end 0 "$HOLDER" holder
	must_say holder
}

# When rlock and its renewer continue, they must find and kill all processes of the command within this time.
KILLED_WITHIN_MS=3000

# suspend_all NUMBER KIND: a cell in which rlock and its renewer stop for longer than the lease; in every other cell the command's
# processes stop as well. Meanwhile a contender acquires the lock, and must keep it.
suspend_all() {
	local all contender pid gone_us went_on_us=0
	hold_for_a_while "$2" || return
	all=("$HOLDER" "$RENEWER")
	# shellcheck disable=SC2207
	(($1 % 2)) || all+=($(inside "$LEDGER"))
	shuffle "${all[@]}"
	kill -STOP "${SHUFFLED[@]}"
	for pid in "${all[@]}"; do
		wait_until 20 is_stopped "$pid" || return
	done
	injected
	repeated
	start_contender contender "$(excluded_kind "$2")" ledger-contender until -t 4s -w 30s
	contender=$PID
	must 'no other process acquired the lock' wait_until 20 all_inside ledger-contender 1
	let_some_pass 700
	shuffle "${all[@]}"
	# Measure from the moment when the first of the two, rlock or its renewer, is continued.
	for pid in "${SHUFFLED[@]}"; do
		[[ $went_on_us != 0 || " $HOLDER $RENEWER " != *" $pid "* ]] || went_on_us=$(now_us)
		kill -CONT "$pid" 2>/dev/null || :
	done
	if gone_us=$(overlap -g "$LEDGER" 5000); then
		took $(((gone_us - went_on_us) / 1000))
		((gone_us - went_on_us <= KILLED_WITHIN_MS * 1000)) || violated "it ran on for $(((gone_us - went_on_us) / 1000)) ms"
	else
		violated 'it runs on'
	fi
	must_end 76 "$HOLDER" holder
	# Check this for longer than the contender's lease.
	must 'the next one lost the lock' stays_true_for 4.2 is_well ledger-contender
	finish_contender contender
	must_end 0 "$contender" contender
	must_say contender
}

@test "suspended: when rlock or its renewer stops, the other one keeps the lock" {
	local which
	for which in rlock renewer; do
		scenario_of_kinds "suspended, $which" '' 15 8 suspend "$which"
	done
}

@test "suspended, all: when rlock and its renewer continue after the lease, the command is terminated, and the next holder keeps the lock" {
	scenario_of_kinds 'suspended, all' 'until the command is gone' 30 10 suspend_all
}

# ---- the wall clock ----

# step_the_clock NUMBER KIND: a cell in which the wall clock jumps by an hour for a holder, a waiter, and a waiter with --wait 1500ms.
step_the_clock() {
	local waiter briefly step=$((3600 - 7200 * ($1 % 2))) begun_us left_us took_us
	follow_clock_file "$CELL/clock"
	start_contender holder "$2" "$LEDGER" until -t 3s
	HOLDER=$PID
	wait_until 20 entered 1 || return
	start_contender waiter "$(excluded_kind "$2")" "$LEDGER" '-f 0' -w 30s
	waiter=$PID
	wait_until 20 listen 1 || return
	begun_us=$(now_us)
	start_contender briefly "$(excluded_kind "$2")" "$LEDGER" '-f 0' -w 1500ms
	briefly=$PID
	let_some_pass 667
	step_clock clock $step
	clock_is_off_by $step || return
	injected
	repeated
	must_end 75 "$briefly" briefly
	took_us=$(($(now_us) - begun_us))
	((took_us >= 1400000 && took_us < 10000000)) || violated "one waited $((took_us / 1000)) ms for 1500 ms"
	# Set the clock right again, or to two hours ahead of the right time.
	choose 0 7200
	step_clock clock "$CHOSEN"
	must 'the holder lost the lock' stays_true_for 3.2 is_well "$LEDGER"
	must_say holder
	left_us=$(now_us)
	finish_contender holder
	must_end 0 "$HOLDER" holder
	must_end 0 "$waiter" waiter
	took_us=$(($(times enter | tail -n 1) - left_us))
	took $((took_us / 1000))
	((took_us < 10000000)) || violated 'the waiter found out too late'
}

@test "clock set: a wall clock that jumps by an hour changes nothing for holders and waiters" {
	needs_wrong_clocks
	scenario_of_kinds 'clock set' 'until the waiter is in' 8 8 step_the_clock
}
