#!/usr/bin/env bats
# bats file_tags=alone
# Processes hang so that what looks into them hangs, too, while a command is to be terminated: strangers that were started
# after it, some of its own, or both. Promised: all of its processes are gone in time, as if nothing hung.
#
# On a machine with other work to do they are late without that as well, by parts of a second, which is for other files
# to count. Where a hang is waited for there is no end.

load chaos

setup_file() { start_server; }
teardown_file() { stop_server; }

# HUNG is the directory of what hangs, for those alone that run under tests/bin/hung: a reader of their environments waits.
setup() {
	directory_setup
	needs_refuse
	HUNG=$BATS_TEST_TMPDIR/hung
	mkdir -p "$HUNG"
	hangs $$
	in_background hung "$HUNG" cat "/proc/$$/environ" >/dev/null
	wait_until 30 test -s "$HUNG/$$"
	kill -KILL "$PID"
	rm "$HUNG/$$"
}

# hangs PID...
hangs() {
	local pid
	for pid; do
		: >"$HUNG/$pid"
	done
}

# An orphan, younger than all that were started before.
hung_stranger() {
	local PID
	in_background sleep 60
	hangs "$PID"
}

# More than a machine that is busy makes them late.
LATE_US=1000000
GRACE_MS=300
# After the end of the grace time.
KILLED_WITHIN_US=500000

# What can't terminate the command, so that another process has to.
LOSSES=('nothing is lost' 'rlock is killed' 'rlock is stopped' 'the renewer is killed' 'the renewer is stopped')

# holds_beside_hung NUMBER OPTION...: sets HOLDER and RENEWER. Returns when all are inside, and all hang that will.
holds_beside_hung() {
	local stay='until -C'
	HUNG=$CELL/hung
	mkdir "$HUNG"
	CLOCK=(hung "$HUNG")
	(($1 % 2)) || stay='until -i -C'
	start_contender holder "${KINDS[$1 % 4]}" "$LEDGER" "$stay" --grace ${GRACE_MS}ms "${@:2}"
	HOLDER=$PID
	wait_until 10 all_inside "$LEDGER" "$FAMILY_SIZE" || return
	RENEWER=$(renewer_of "$HOLDER")
	something_hangs
	choose "${LOSSES[@]}"
	WHERE="${KINDS[$1 % 4]}, $STRANGERS strangers and $OWN of its own hang, $CHOSEN, $WHERE"
	case $CHOSEN in
	'rlock is killed') kill -s KILL "$HOLDER" ;;
	'rlock is stopped') kill -s STOP "$HOLDER" ;;
	*renewer*killed) kill -s KILL "$RENEWER" ;;
	*renewer*stopped) kill -s STOP "$RENEWER" ;;
	esac
}

# Sets STRANGERS and OWN: how many.
something_hangs() {
	local i
	draw 0 3
	STRANGERS=$DRAWN
	for ((i = 0; i < STRANGERS; i++)); do
		hung_stranger
	done
	# shellcheck disable=SC2046
	shuffle $(inside "$LEDGER")
	draw $((STRANGERS == 0)) ${#SHUFFLED[@]}
	OWN=$DRAWN
	hangs "${SHUFFLED[@]:0:OWN}"
	injected $((STRANGERS + OWN))
}

# judge END_US STATUS: the command's processes were to be gone by then, and rlock was to end so. None of them was looked into.
judge() {
	repeated
	! look_until_gone 10000 || was_gone_by "$1" $LATE_US
	[ -z "$(find "$HUNG" -type f -size +0)" ] || violated 'looked into processes'
	find "$HUNG" -type f -delete
	kill -s CONT "$HOLDER" "$RENEWER" 2>/dev/null || :
	[[ $WHERE = *'rlock is killed'* ]] || must_end "$2" "$HOLDER" holder
}

# terminate NUMBER: a command with such processes has run for too long, has lost its lock, or is at the end of its lease.
terminate() {
	local begun_us end_us
	case $(($1 % 3)) in
	0)
		holds_beside_hung "$1" --max-run 3s || return
		begun_us=$(times enter)
		judge $((begun_us + 3000000 + GRACE_MS * 1000 + KILLED_WITHIN_US)) 124
		;;
	1)
		holds_beside_hung "$1" -t 3s || return
		end_us=$(lease_end_us)
		redis del "$NAME" >/dev/null
		# A lock that was deleted leaves its holds.
		KEPT="rlock_holds:{$NAME}"
		judge "$end_us" 76
		;;
	2)
		holds_beside_hung "$1" -l 3s || return
		judge "$(lease_end_us)" 124
		;;
	esac
}

@test "hung process" {
	scenario 'hung process' 'left of the time' 300 12 terminate
}
