#!/usr/bin/env bats
# A wall clock that is set while a lock is held and waited for: it is of no account.

load chaos
load ../lib/clocks

# step_the_clock NUMBER KIND: by an hour, for a holder, for a waiter, and for one that waits a second and a
# half.
step_the_clock() {
	local waiter briefly steps=(3600 -3600) begun_us end_us entered_us
	begin_chance
	clock_follows "$CELL/clock"
	visits holder "$2" "$LEDGER" until -t 1s
	HOLDER=$PID
	wait_until 20 all_inside "$LEDGER" 1 || return
	visits waiter "$(rival_kind "$2")" "$LEDGER" '-f 0' -w 30s
	waiter=$PID
	wait_until 20 listen 1 || return
	begun_us=$(now_us)
	visits briefly "$(rival_kind "$2")" briefly '-f 0' -w 1500ms
	briefly=$PID
	draw 0 667
	let_pass_ms "$DRAWN"
	step_clock clock "${steps[$1 % 2]}"
	is_off_by "${steps[$1 % 2]}" || return
	injected
	repeated
	must_end 75 briefly "$briefly" "chance $CHANCE"
	end_us=$(now_us)
	((end_us - begun_us >= 1400000 && end_us - begun_us < 10000000)) ||
		violated "one waited $(((end_us - begun_us) / 1000)) ms for 1500 ms, chance $CHANCE"
	must "the holder lost the lock, chance $CHANCE" all_is_well_with "$LEDGER" "$2"
	# And back, or further.
	shuffle 0 7200
	step_clock clock "${SHUFFLED[0]}"
	must "the holder lost the lock, chance $CHANCE" stays 1.2 all_is_well_with "$LEDGER" "$2"
	must "the holder said something, chance $CHANCE" cmp said-holder /dev/null
	end_us=$(now_us)
	leaves holder
	must_end 0 holder "$HOLDER" "chance $CHANCE"
	must_end 0 waiter "$waiter" "chance $CHANCE"
	entered_us=$(awk '$2 == "enter" { last = $1 } END { print last }' "$LEDGER")
	took $(((entered_us - end_us) / 1000))
	((entered_us - end_us < 10000000)) || violated "the waiter found out too late, chance $CHANCE"
	count_overlaps "$LEDGER"
	must_leave_nothing 15
}

@test "clock set" {
	local kind
	need_wrong_clocks
	begin_scenario 'clock set'
	for kind in "${KINDS[@]}"; do
		in_cells "$(scaled 8)" 8 step_the_clock "$kind"
	done
	end_scenario 'until the waiter is in'
}
