#!/usr/bin/env bats
# bats file_tags=alone
# Some processes hang, and any process that reads their environment hangs as well: unrelated processes, some of the command's own,
# or both. Meanwhile rlock must terminate the command. Promised: all its processes end in time, as if no process hung.
#
# A busy machine delays a termination by parts of a second, so LATE_US allows for that; other files measure this delay. The test
# still finds an rlock that waits for a hung process, since that rlock would never end.

load chaos

setup_file() { start_server; }
teardown_file() { stop_server; }

# HUNG is a directory with a file for each hung process, named by its pid. A program under tests/bin/hung hangs when it reads the environment
# of such a process. First check that this works here.
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

# hangs PID...: makes these processes hang.
hangs() {
	local pid
	for pid; do
		: >"$HUNG/$pid"
	done
}

# hung_stranger: starts a process that does not belong to the command, and makes it hang. It is younger than the command's processes.
hung_stranger() {
	local PID
	in_background sleep 60
	hangs "$PID"
}

# How late a termination may be. A busy machine causes less delay.
LATE_US=1000000
GRACE_MS=300
# All processes must have ended at the latest this long after the grace time.
KILLED_WITHIN_US=500000

# What happens to rlock or to its renewer before the command must be terminated. The other one of the two must then do it.
LOSSES=('nothing is lost' 'rlock is killed' 'rlock is stopped' 'the renewer is killed' 'the renewer is stopped')

# holds_beside_hung NUMBER OPTION...: starts a holder, whose rlock runs under tests/bin/hung. When all its processes are inside, makes
# some processes hang, and kills or stops rlock or the renewer. Sets HOLDER and RENEWER.
holds_beside_hung() {
	local stay='until -C'
	HUNG=$CELL/hung
	mkdir "$HUNG"
	CLOCK=(hung "$HUNG")
	(($1 % 2)) || stay='until -i -C'
	start_contender holder "${KINDS[$1 % 4]}" "$LEDGER" "$stay" --grace ${GRACE_MS}ms "${@:2}"
	HOLDER=$PID
	wait_until 10 all_inside "$LEDGER" "$FAMILY_SIZE" || return
	find_renewer "$HOLDER" || return
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

# something_hangs: makes a random number of processes hang, at least one. Sets STRANGERS and OWN: how many are unrelated, and how many belong
# to the command.
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

# judge END_US STATUS: the command's processes must have ended by END_US, and rlock must exit with STATUS. No process may have read the
# environment of a hung process.
judge() {
	repeated
	! look_until_gone 10000 || was_gone_by "$1" $LATE_US
	[ -z "$(find "$HUNG" -type f -size +0)" ] || violated 'looked into processes'
	find "$HUNG" -type f -delete
	kill -s CONT "$HOLDER" "$RENEWER" 2>/dev/null || :
	[[ $WHERE = *'rlock is killed'* ]] || must_end "$2" "$HOLDER" holder
}

# terminate NUMBER: the command reaches its --max-run, loses its lock, or reaches the end of a fixed lease.
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
		# Only the lock's key was deleted, so allow that the key of its holds stays.
		KEPT="rlock_holds:{$NAME}"
		judge "$end_us" 76
		;;
	2)
		holds_beside_hung "$1" -l 3s || return
		judge "$(lease_end_us)" 124
		;;
	esac
}

@test "hung process: a terminated command has ended in time although whatever reads the environment of some processes hangs" {
	scenario 'hung process' 'left of the time' 300 12 terminate
}
