# Checks the effects of a signal against the rules of kill_matrix, until the lock of a cell is free again. killed.bats has the
# cells and their processes.

# The delay that a busy machine can add to an event that must come immediately.
SLACK_US=1000000

# by TEXT US LIMIT_US: records a violation if the event TEXT, which happened at US, came later than LIMIT_US.
by() {
	(($2 <= $3)) || violated "$1 $((($2 - $3) / 1000)) ms too late"
}

# processes_end: waits for the end of all processes inside the lock. Sets GONE_US to the time of the last one.
processes_end() {
	wait "$GONE_JOB" || violated 'those inside never ended'
	GONE_US=$(<gone-inside)
	: "${GONE_US:=$(now_us)}"
}

# all_run PID...: all these processes must run, except a grandchild to which the cell has sent a deadly signal.
all_run() {
	local pid
	for pid; do
		[[ $TARGET = grandchild && $pid = "$GRANDCHILD" && $SIGNAL != @(PAUSE|STOP) ]] || is_running "$pid" ||
			violated 'one of the processes was ended'
	done
}

go_on() {
	kill -s CONT "${HIT[@]}" 2>/dev/null || :
}

# end_processes: first kills the command's other processes, then ends the command itself.
end_processes() {
	local pid
	for pid in "${OTHERS[@]}"; do
		find_process_name "$pid"
		[ "$PROCESS_NAME" != overlap ] || kill -s KILL "$pid"
	done
	gone 5000 "${OTHERS[@]}" >/dev/null
	finish_contender holder
	processes_end
}

# next_is_in LIMIT_US: the contender must have acquired the lock at LIMIT_US + SLACK_US or before. Records the time from the fault
# until then, unless the test itself ended the processes and so determined that time.
next_is_in() {
	local at_us
	must_end 0 "$CONTENDER" contender
	at_us=$(times enter | sed -n 2p)
	by 'the lock was free' "${at_us:-$(now_us)}" $(($1 + SLACK_US))
	[ "$PROCESSES" = stays ] || took $(((${at_us:-0} - FAULT_US) / 1000))
}

# unlock_says STATUS: the caller's unlock must exit with STATUS. In a cell whose server comes back late, the unlock is repeated
# until it reaches the server.
unlock_says() {
	local status tries
	for ((tries = 0; tries < 20; tries++)); do
		status=0
		rlock unlock --connect-timeout 500ms --pid "$CALLER" "$NAME" || status=$?
		[ "$status-$SERVER" = 69-late ] || break
		pause_for 0.05
	done
	[ "$status" = "$1" ] || violated "unlock said $status, not $1"
}

# run_beside_next: the command's processes must run on without the lock, while the next holder has it. Then the cell continues the
# stopped processes, or kills all of them.
run_beside_next() {
	local since_us
	next_is_in "$LEASE_END_US"
	all_run "${INSIDE[@]}"
	since_us=$(now_us)
	if [ "$OUTCOME" = expires ]; then
		unlock_says "$([ "$SERVER" = gone ] && echo 69 || echo 76)"
	fi
	if [ "$SIGNAL" = STOP ]; then
		go_on
	else
		[ -z "${RENEWER-}" ] || must 'the renewer runs on' wait_until 1 is_gone "$RENEWER"
		kill -s KILL "${INSIDE[@]}"
	fi
	processes_end
	[ "$SIGNAL" != STOP ] || by 'the processes were stopped' "$GONE_US" $((since_us + SLACK_US))
	# An unlock that reached no server leaves the hold file, so that the unlock can be repeated. Call unlock once more: a call
	# that searches for a hold removes the hold files of processes that have ended.
	[ "$OUTCOME-$SERVER" != expires-gone ] || rlock unlock --connect-timeout 500ms "$NAME" 2>/dev/null || :
}

# run_protected: the processes must run on, and keep the lock, for longer than a lease. Then the cell ends them, or the caller
# unlocks.
run_protected() {
	local left_us=$((FAULT_US + LEASE_MS * 1300 - $(now_us)))
	((left_us <= 0)) || let_pass_ms $((left_us / 1000))
	all_run "${INSIDE[@]}"
	must 'the lock is not held' has_holder
	must 'another owner acquired the lock' entered 1
	[ "$FREE" = alone ] || go_on
	GONE_US=$(now_us)
	if [ "$FREE" = unlock ]; then
		unlock_says 0
	else
		end_processes
	fi
	next_is_in "$GONE_US"
	if [ "$FREE" = alone ]; then
		must 'rlock went on by itself' is_stopped "$RLOCK"
		go_on
	elif [ "$FREE" = unlock ]; then
		finish_contender holder
		processes_end
	fi
}

# end_by_fault: the fault has ended the command or its lock (the words leaves, ends, in_time). The contender must acquire the lock
# soon after the fault, the end of the processes, or the end of the lease, by the word in FREE.
end_by_fault() {
	local free_us=$FAULT_US
	case $PROCESSES in
	ends)
		processes_end
		[ "${CALLER-}" ] || by 'the processes ended' "$GONE_US" $((FAULT_US + GRACE_MS * 1000 + SLACK_US))
		;;
	in_time)
		processes_end
		by 'the processes were stopped' "$GONE_US" "$LEASE_END_US"
		[ "$TARGET" != rlock ] || go_on
		;;
	esac
	[ "$FREE" != end ] || free_us=$GONE_US
	((free_us > BACK_US)) || free_us=$BACK_US
	[ "$FREE" != lease ] || free_us=$LEASE_END_US
	next_is_in "$free_us"
	if [ "$PROCESSES" = leaves ]; then
		all_run "${OTHERS[@]}"
		kill -s KILL "${OTHERS[@]}"
		processes_end
	fi
}

# ends_so: rlock, or the caller, must end in time, with the status and the message of the outcome.
ends_so() {
	local status=$STATUS limit_us=$((LEASE_END_US + SLACK_US))
	[ "$status" != signal ] || status=$((128 + $(kill -l "$SIGNAL")))
	must_end "$status" "${RLOCK:-$CALLER}" holder
	wait "$ENDED_JOB"
	# rlock makes at least one attempt to release a lost lock, which can take a second.
	[ "$OUTCOME" != stopped ] || limit_us=$((limit_us + 1000000))
	[[ $OUTCOME != @(stopped|*_unheard) ]] || by 'rlock ended' "$(<gone-rlock)" $limit_us
	case $SAYS in
	nothing) must_say holder ;;
	unreleased) [[ $SERVER = late && ! -s stderr-holder ]] || must_say holder "$NAME: release failed: " ;;
	lost) must_say holder "$NAME: lock lost at [0-9T:+-]+: " ;;
	esac
}

# judge: checks the four facts that kill_matrix lists for OUTCOME.
judge() {
	local PROCESSES STATUS SAYS FREE
	read -r PROCESSES STATUS SAYS FREE < <(sed -n "s/^:$OUTCOME //p" "$BATS_TEST_DIRNAME/kill_matrix")
	case $PROCESSES in
	stays) run_protected ;;
	beside) run_beside_next ;;
	*) end_by_fault ;;
	esac
	ends_so
	# All permits of a semaphore must be free again.
	[ "$KIND" != sem ] || must 'not all permits are free' wait_until 10 redis_says "$PERMITS" get "$NAME"
	case $PROCESSES-$FREE in
	beside-* | leaves-* | *-unlock) MAY_OVERLAP=yes ;;
	*) MAY_OVERLAP= ;;
	esac
}
