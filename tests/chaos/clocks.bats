#!/usr/bin/env bats
# A wall clock that is set, and waiters of one queue whose clocks differ by hours: the wall clock is of no account.

load chaos
load ../lib/clocks

setup_file() { start_server; }
teardown_file() { stop_server; }

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

so_many_stand() {
	[ "$(redis llen "redisson_lock_queue:{$NAME}")" = "$1" ]
}

IN_QUEUE=6

# keep_positions NUMBER KIND: of the waiters in a queue each has another clock, and one is killed.
keep_positions() {
	local number dead waiters=() wanted=() got
	begin_chance
	visits holder "$2" turns.0 until -t 2s
	HOLDER=$PID
	wait_until 20 all_inside turns.0 1 || return
	for ((number = 1; number <= IN_QUEUE; number++)); do
		draw -1 1
		clock_is_off $((DRAWN * 3600))
		visits "$number" "$2" "turns.$number" '-f 0' -t 2s
		waiters+=("$PID")
		wait_until 20 so_many_stand "$number" || return
	done
	draw 1 $IN_QUEUE
	dead=$DRAWN
	kill -KILL "${waiters[dead - 1]}"
	injected
	repeated
	draw 0 3000
	let_pass_ms "$DRAWN"
	leaves holder
	must_end 0 holder "$HOLDER" "chance $CHANCE"
	for ((number = 1; number <= IN_QUEUE; number++)); do
		((number != dead)) || continue
		must_end 0 "$number" "${waiters[number - 1]}" "chance $CHANCE"
		wanted+=("turns.$number")
	done
	got=$(awk '$2 == "enter" { print $1, FILENAME }' turns.[1-9] | sort -n | cut -d ' ' -f 2 | paste -s -d ' ')
	[ "$got" = "${wanted[*]}" ] || violated "they got in as $got, chance $CHANCE"
	# One more, which finds what the dead one has left: the last of a queue that had not listened yet is not missed.
	visits next "$2" turns.next '-f 0' -t 2s
	must_end 0 next "$PID" "chance $CHANCE"
	must_leave_nothing 15
}

@test "clock set" {
	local kind
	need_wrong_clocks
	begin_scenario 'clock set'
	for kind in "${KINDS[@]}"; do
		in_cells "$(scaled 8)" 8 step_the_clock "$kind"
	done
	# The one kind that has a line.
	in_cells "$(scaled 8)" 8 keep_positions fair
	end_scenario 'until the waiter is in'
}
