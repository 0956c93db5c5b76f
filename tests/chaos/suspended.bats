#!/usr/bin/env bats
# Processes that stop for longer than a lease. Of rlock and its renewer each does the other one's part; what stood still
# together is terminated as soon as it goes on, and leaves the next holder alone.

load chaos

setup_file() { start_server; }
teardown_file() { stop_server; }

# hold_for_a_while KIND: with a short lease, until any moment of two cycles of renewals. Sets HOLDER, RENEWER.
hold_for_a_while() {
	begin_chance
	holds holder "$1" "$LEDGER" -t 2s || return
	HOLDER=$PID
	wait_until 20 has_renewer "$HOLDER" || return
	RENEWER=$(renewer_of "$HOLDER")
	draw 0 1333
	let_pass_ms "$DRAWN"
}

# is_taken KIND: for a rival.
is_taken() {
	local status=0
	rlock "$(verb_of "$(rival_kind "$1")")" -n "$NAME" -- true || status=$?
	[ "$status" = 75 ]
}

all_run() {
	local pid
	for pid in $(pids_inside "$LEDGER"); do
		is_running "$pid" || return
	done
}

pids_inside() {
	sed -nE 's/^[0-9]+ (enter|child) [a-z]+ ([0-9]+)$/\2/p' "$1"
}

# suspend NUMBER KIND WHICH: the other one sees to it.
suspend() {
	local suspended
	hold_for_a_while "$2" || return
	suspended=$HOLDER
	[ "$3" = rlock ] || suspended=$RENEWER
	kill -STOP "$suspended"
	wait_until 20 is_stopped_or_gone "$suspended" || return
	injected
	repeated
	draw 2200 3200
	let_pass_ms "$DRAWN"
	must "the lock was not kept, chance $CHANCE" is_taken "$2"
	must "the command did not go on, chance $CHANCE" all_run
	kill -CONT "$suspended" 2>/dev/null || :
	leaves holder
	must_end 0 holder "$HOLDER" "chance $CHANCE"
	must "it said something, chance $CHANCE" cmp said-holder /dev/null
	must_leave_nothing 15
}

# rlock kills a renewer that stays stopped, and takes over.
is_stopped_or_gone() {
	is_stopped "$1" || is_gone "$1"
}

# How soon a command must be gone when rlock and renewer go on: they find its processes and kill them.
KILLED_WITHIN_MS=3000

# suspend_all NUMBER KIND: rlock and renewer, and every other time the command as well, for longer than the
# lease. A rival has the lock then, and keeps it.
suspend_all() {
	local all rival pid went_on_us=0
	hold_for_a_while "$2" || return
	all=("$HOLDER" "$RENEWER")
	# shellcheck disable=SC2207
	(($1 % 2)) || all+=($(pids_inside "$LEDGER"))
	shuffle "${all[@]}"
	kill -STOP "${SHUFFLED[@]}"
	for pid in "${all[@]}"; do
		wait_until 20 is_stopped "$pid" || return
	done
	injected
	repeated
	visits rival "$(rival_kind "$2")" rivals until -t 2s -w 30s
	rival=$PID
	must "no other process acquired the lock, chance $CHANCE" wait_until 20 all_inside rivals 1
	draw 0 700
	let_pass_ms "$DRAWN"
	shuffle "${all[@]}"
	# The time from when the first of the two can act.
	for pid in "${SHUFFLED[@]}"; do
		case $pid in
		"$HOLDER" | "$RENEWER") ((went_on_us)) || went_on_us=$(now_us) ;;
		esac
		kill -CONT "$pid" 2>/dev/null || :
	done
	if gone_us "$LEDGER" 5000; then
		took $(((GONE_US - went_on_us) / 1000))
		((GONE_US - went_on_us <= KILLED_WITHIN_MS * 1000)) ||
			violated "it ran on for $(((GONE_US - went_on_us) / 1000)) ms, chance $CHANCE"
	else
		violated "it runs on, chance $CHANCE"
	fi
	must_end 76 holder "$HOLDER" "chance $CHANCE"
	# For longer than its lease.
	must "the next one lost the lock, chance $CHANCE" stays 2.2 all_is_well_with rivals "$2"
	leaves rival
	must_end 0 rival "$rival" "chance $CHANCE"
	must "the next one said something, chance $CHANCE" cmp said-rival /dev/null
	must_leave_nothing 15
}

@test "one of two suspended" {
	local kind
	for kind in "${KINDS[@]}"; do
		begin_scenario "suspended, rlock, $kind"
		in_cells "$(scaled 15)" 8 suspend "$kind" rlock
		end_scenario -
		begin_scenario "suspended, renewer, $kind"
		in_cells "$(scaled 15)" 8 suspend "$kind" renewer
		end_scenario -
	done
}

@test "all suspended" {
	local kind
	for kind in "${KINDS[@]}"; do
		begin_scenario "suspended, all, $kind"
		in_cells "$(scaled 30)" 10 suspend_all "$kind"
		end_scenario 'until the command is gone'
	done
}
