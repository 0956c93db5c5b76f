# Checks what follows from a signal, by the rules of kill_matrix, until the lock of a cell is free again. killed.bats has the cells and
# their processes.

# The delay that a busy machine can add to whatever must happen immediately.
SLACK_US=1000000

# by TEXT US LIMIT_US: the event TEXT happened at US, which must not be later than LIMIT_US.
by() {
	(($2 <= $3)) || violated "$1 $((($2 - $3) / 1000)) ms too late"
}

# processes_end: waits for the end of all processes inside the lock. Sets GONE_US to the time of the last one.
processes_end() {
	wait "$GONE_JOB" || violated 'those inside never ended'
	GONE_US=$(<gone-inside)
	: "${GONE_US:=$(now_us)}"
}

# all_run PID...: all of these must run. The grandchild need not, if the cell's signal kills it.
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

# end_processes: ends the command, after its other processes.
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

# next_is_in LIMIT_US: the contender must have acquired the lock by LIMIT_US, plus SLACK_US. Records the time from the fault until then,
# unless this test decided it by ending the processes.
next_is_in() {
	local at_us
	must_end 0 "$CONTENDER" contender
	at_us=$(times enter | sed -n 2p)
	by 'the lock was free' "${at_us:-$(now_us)}" $(($1 + SLACK_US))
	[ "$PROCESSES" = stays ] || took $(((${at_us:-0} - FAULT_US) / 1000))
}

# unlock_says STATUS: the caller's unlock must exit with STATUS. In a cell whose server comes back late, the unlock is repeated
# until then.
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

# run_beside_next: the processes run without the lock, while the next holder has it. Then the stopped processes continue, or all are
# killed.
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
	# An unlock that reached no server leaves the hold file, so that it can be repeated. Call unlock once more: a call that looks for a
	# hold removes the hold files of processes that have ended.
	[ "$OUTCOME-$SERVER" != expires-gone ] || rlock unlock --connect-timeout 500ms "$NAME" 2>/dev/null || :
}

# run_protected: the processes keep the lock for longer than a lease. Then they end, or the caller unlocks.
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

# end_by_fault: the fault ends the command or its lock (leaves, ends, in_time). The contender comes after the fault, after the end of the
# processes, or after the lease.
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

# ends_so: rlock, or the caller, must end with the status and message of the outcome, in time.
ends_so() {
	local status=$STATUS limit_us=$((LEASE_END_US + SLACK_US))
	[ "$status" != signal ] || status=$((128 + $(kill -l "$SIGNAL")))
	must_end "$status" "${RLOCK:-$CALLER}" holder
	wait "$ENDED_JOB"
	# rlock tries to release a lost lock once at least, for a second.
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
