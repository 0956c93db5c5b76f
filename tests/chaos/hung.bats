#!/usr/bin/env bats
# bats file_tags=alone
# Processes hang so that what looks into them hangs, too, while a command is to be terminated: strangers that were started
# after it, some of its own, or both. Promised is: all of its processes are gone in time, as if nothing hung.
#
# On a machine with other work to do they are late without that as well, by parts of a second, which is for other files
# to count. Where a hang is waited for there is no end.

# chaos.bash has the kinds, the name, and what a cell has for a ledger.
# shellcheck disable=SC2153

load chaos
load ../lib/hanging

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	directory_setup
	needs_hung
}

# More than a machine that is busy makes them late.
LATE_US=1000000

GRACE_MS=300

# What can't terminate the command, so that another process has to.
LOSSES=('nothing is lost' 'rlock is killed' 'rlock is stopped' 'the renewer is killed' 'the renewer is stopped')

# holds_beside_hung NUMBER OPTION...: sets HOLDER, LOST and WHERE. Returns when all are inside and all hang that will.
holds_beside_hung() {
	local stay='until -C'
	begin_chance
	HUNG=$CELL/hung
	mkdir "$HUNG"
	# shellcheck disable=SC2034
	CLOCK=(hung "$HUNG")
	(($1 % 2)) || stay='until -i -C'
	visits holder "${KINDS[$1 % 4]}" "$LEDGER" "$stay" --grace ${GRACE_MS}ms "${@:2}"
	HOLDER=$PID
	wait_until 10 all_inside "$LEDGER" "$FAMILY_SIZE" || return
	draw 1 ${#LOSSES[@]}
	LOST=${LOSSES[DRAWN - 1]}
	something_hangs
	lose_one
	WHERE="${KINDS[$1 % 4]}, $STRANGERS strangers and $OWN of its own hang, $LOST, cell $1, chance $CHANCE"
}

# The command's.
own_processes() {
	awk '$2 == "enter" || $2 == "child" { print $NF }' "$LEDGER"
}

# Sets STRANGERS and OWN: how many.
something_hangs() {
	local i pids
	draw 0 3
	STRANGERS=$DRAWN
	for ((i = 0; i < STRANGERS; i++)); do
		hung_stranger
	done
	mapfile -t pids < <(own_processes)
	shuffle "${pids[@]}"
	draw $((STRANGERS == 0)) ${#pids[@]}
	OWN=$DRAWN
	hangs "${SHUFFLED[@]:0:OWN}"
	injected $((STRANGERS + OWN))
}

lose_one() {
	RENEWER=$(renewer_of "$HOLDER")
	case $LOST in
	rlock*killed) kill -s KILL "$HOLDER" ;;
	rlock*stopped) kill -s STOP "$HOLDER" ;;
	*killed) kill -s KILL "$RENEWER" ;;
	*stopped) kill -s STOP "$RENEWER" ;;
	esac
}

# judge END_US STATUS: the command's processes were to be gone by then, and rlock was to end so. None of them was looked into.
judge() {
	local status=0 seen_us
	repeated
	if seen_us=$(overlap -G "$LEDGER" 10000); then
		took $((($1 - seen_us) / 1000))
		((seen_us < $1 + LATE_US)) || violated "inside $(((seen_us - $1) / 1000)) ms too long: $WHERE"
	else
		violated "still inside long behind the end: $WHERE"
	fi
	[ -z "$(find "$HUNG" -type f -size +0)" ] || violated "looked into processes: $WHERE"
	find "$HUNG" -type f -delete
	kill -s CONT "$HOLDER" "$RENEWER" 2>/dev/null || :
	if [ "$LOST" != 'rlock is killed' ]; then
		wait_until 10 is_gone "$HOLDER" || violated "rlock does not end: $WHERE"
		wait "$HOLDER" || status=$?
		[ "$status" = "$2" ] || violated "ended with $status: $WHERE: $(said_by holder)"
	fi
	wait_until 10 nothing_runs >/dev/null 2>&1 || violated "rlock runs on: $WHERE"
	count_overlaps "$LEDGER"
}

# The lock's lease ends so many microseconds from now.
lease_us() {
	echo $(($(redis pttl "$NAME") * 1000))
}

# Behind the end of the grace time.
KILLED_WITHIN_US=500000

ENDS=(max_run lost lease)

# terminate NUMBER: a command with such processes has run for too long, has lost its lock, or is at the end of its lease.
terminate() {
	local begun_us end_us way=${ENDS[$1 % 3]}
	case $way in
	max_run)
		holds_beside_hung "$1" --max-run 1500ms || return
		begun_us=$(sed -n 's/ enter .*//p' "$LEDGER")
		judge $((begun_us + 1500000 + GRACE_MS * 1000 + KILLED_WITHIN_US)) 124
		;;
	lost)
		holds_beside_hung "$1" -t 3s || return
		end_us=$(($(lease_us) + $(now_us)))
		redis del "$NAME" >/dev/null
		judge "$end_us" 76
		;;
	lease)
		holds_beside_hung "$1" -l 3s || return
		judge $(($(lease_us) + $(now_us))) 124
		;;
	esac
}

@test "hung process" {
	begin_scenario 'hung process'
	in_cells "$(scaled 300)" 12 terminate
	end_scenario 'left of the time' least
}
