#!/usr/bin/env bats
# A waiter is woken: a lock that is released while an rlock is about to listen for that goes to it at once, and
# not when the lease that it knows of ends, or when it looks by itself, which is after 2 s at the soonest.
#
# What is measured is the time from the one's leaving to the other's entering, by the witness. For that several
# processes need a turn on the processor, one after the other. So a time is too long when it is more than 200 ms plus
# what those turns took just then: tests/tools/turns measures one, all the while.

load chaos
load ../lib/proxying

setup() {
	directory_setup
	DIRECT_URL=$RLOCK_URL
}

# So few that they do not keep one another from the processor.
LANES=2
LIMIT_MS=200
# So long sleeps a waiter that was not woken: no want of a processor excuses more, but where one turn alone took half of that.
LATEST_MS=1900
# The command, rlock, the server, the other rlock, its renewer, and its command.
TURNS=6
# The one leaves at most so long after the other was started. Half of the times what that one asks the server is
# answered late, so that each gap between two of its steps is wide.
LEAVES_WITHIN_US=30000
LATE_MS=4

# ---- one after the other ----

# wrong TEXT
wrong() {
	violated "$KIND, round $ROUND, SEED=$SEED: $1"
}

# pause: a moment, without a process.
pause() {
	read -r -t 0.001 -u "$PAUSE" || :
}

# another_is_in: from here on a process is inside. 5 s at most.
another_is_in() {
	local start=${EPOCHREALTIME/./}
	until [ -s ledger ] || ((${EPOCHREALTIME/./} - start > 5000000)); do
		pause
	done
}

# of_waiter COMMAND [ARG...]: by a way that is slow half of the times.
of_waiter() {
	((ROUND % 2)) || local -x RLOCK_URL=$DIRECT_URL
	timeout 30 "$@"
}

# of_holder VERB MODE [OPTION...]: one that is inside for so long. With a short lease: a wake-up that was lost costs
# no more.
of_holder() {
	RLOCK_URL=$DIRECT_URL timeout 30 rlock "$1" -t 5s "$NAME" -- overlap ledger "$2" "${@:3}"
}

ends_well() {
	local status=0
	wait "$1" || status=$?
	[ "$status" = 0 ] || wrong "$2 ended with $status"
}

# handed_over FROM TO: between these two, in microseconds, the lock went from hand to hand.
handed_over() {
	if [ -z "$1" ] || [ -z "$2" ]; then
		wrong 'no waiter entered'
		return
	fi
	echo "$1 $2 $KIND, round $ROUND, SEED=$SEED" >>"$HANDOVERS"
	repeated
}

# times EVENT: when that happened, the first one first.
times() {
	awk -v event="$1" '$2 == event { print $1 }' ledger
}

# two HOLDER WAITER: verbs.
two() {
	local modes=() verb holder
	for verb in "$1" "$2"; do
		[ "$verb" = rlock ] && modes+=(shared) || modes+=(exclusive)
	done
	of_holder "$1" "${modes[0]}" -f $((RANDOM % LEAVES_WITHIN_US)) &
	holder=$!
	another_is_in
	of_waiter rlock "$2" -t 5s -w 20s "$NAME" -- overlap ledger "${modes[1]}" || wrong "the waiter ended with $?"
	ends_well "$holder" 'the holder'
	handed_over "$(times leave | head -n 1)" "$(times enter | tail -n 1)"
	injected
	count_overlaps ledger
}

# ---- rounds ----

# lane NUMBER ROUNDS KIND FUNCTION [ARG...]: rounds one after the other, under one name.
lane() {
	local rounds=$2
	KIND=$3
	RANDOM=$((SEED + $1))
	mkfifo pause
	exec {PAUSE}<>pause
	start_proxy
	proxy delay "$LATE_MS"
	for ((ROUND = $1; ROUND <= rounds * LANES; ROUND += LANES)); do
		rm -f ledger ledger.mark out
		"${@:4}"
	done
	must "$KIND: keys are left" wait_until 6 is_free "$NAME"
	must "$KIND: something runs" wait_until 10 nothing_runs
}

# wake_ups ROUNDS KIND FUNCTION [ARG...]
wake_ups() {
	local rounds watch by_machine
	rounds=$(scaled $(($1 / LANES)))
	SEED=${SEED:-$RANDOM}
	begin_scenario "wake-up, $2"
	HANDOVERS=$PWD/handovers
	rm -f watch turns.log "$HANDOVERS"
	mkfifo watch
	turns <watch >turns.log 3>&- &
	exec {watch}>watch
	(in_cells "$LANES" "$LANES" lane "$rounds" "${@:2}")
	exec {watch}>&-
	: >by-machine
	judge
	by_machine=$(wc -l <by-machine)
	end_scenario "from leave to enter, $by_machine above $LIMIT_MS ms for want of a processor"
}

# Each time, and of those that are too long whether the machine was the cause.
judge() {
	awk -v limit_us=$((LIMIT_MS * 1000)) -v latest_us=$((LATEST_MS * 1000)) -v turns="$TURNS" '
		FILENAME == "turns.log" { due[++count] = $1; over[count] = $2; next }
		{
			took = $2 - $1
			print "time", int(took / 1000)
			if (took <= limit_us) next
			worst = 0
			for (i = 1; i <= count; i++)
				if (due[i] <= $2 && over[i] >= $1 && over[i] - due[i] > worst) worst = over[i] - due[i]
			text = int(took / 1000) " ms"
			for (i = 3; i <= NF; i++) text = text " " $i
			text = text "; a turn took " int(worst / 1000) " ms then"
			if (took <= limit_us + turns * worst && (took < latest_us || worst > latest_us / 2)) print text >"by-machine"
			else print "violation", text
		}' turns.log "$HANDOVERS" >>"$RECORD"
}

@test "wake-up" {
	wake_ups 250 plain two run run
	wake_ups 250 fair two fair fair
	wake_ups 250 'read behind write' two wlock rlock
	wake_ups 250 'write behind read' two rlock wlock
}
