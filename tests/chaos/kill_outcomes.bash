# The words of kill_matrix: what has to come of a signal. Each is a function that watches a cell of killed.bats until its
# lock is free again, and puts on record what went otherwise. Sourced after killing.bash, whose processes these are.

# What a cell is about (SIGNAL, SERVER...) killed.bats says; its processes are killing.bash's. The table names the functions.

# "At once", on a machine that has more to do.
SLACK_MS=1000

# ---- what is to be ----

# wrong TEXT
wrong() {
	violated "$WHAT: $1"
}

# ought TEXT COMMAND [ARG...]
ought() {
	local heard
	heard=$("${@:2}" 2>&1) || wrong "$1${heard:+ (${heard//$'\n'/; })}"
}

# ought_by TEXT US LIMIT_US: what happened then happened early enough.
ought_by() {
	(($2 <= $3)) || wrong "$1: $((($2 - $3) / 1000)) ms too late"
}

# A signal that ends a process.
is_deadly() {
	case $SIGNAL in
	PAUSE | STOP) return 1 ;;
	esac
}

# For longer than a lease all of the processes run, and the next one is kept out.
stays_protected() {
	local pid
	wait_for_us $((FAULT_US + LEASE_MS * 1300))
	for pid in "${INSIDE[@]}"; do
		if [ "$TARGET" != grandchild ] || [ "$pid" != "$GRANDCHILD" ] || ! is_deadly; then
			ought 'one of those inside was ended' runs "$pid"
		fi
	done
	ought 'the lock is not held' has_holder
	ought 'another owner acquired the lock' entered 1
}

# Nothing is protected, and nothing was stopped.
stays_unprotected() {
	local pid
	next_enters "$LEASE_END_US"
	for pid in "${INSIDE[@]}"; do
		ought 'one of those inside was ended' runs "$pid"
	done
}

# The command itself ends, its other processes before.
end_inside() {
	local pid name
	go_on
	for pid in "${CHILDREN[@]}"; do
		# One has ended long ago perhaps, and its number is another process's.
		{ read -r name <"/proc/$pid/comm"; } 2>/dev/null || continue
		[ "$name" != overlap ] || kill -s KILL "$pid"
	done
	gone 5000 "${CHILDREN[@]}" >/dev/null
	let_go
	inside_is_gone
}

# Sets GONE_US: when the last of those inside ended.
inside_is_gone() {
	wait "$GONE_JOB" || wrong 'those inside never ended'
	GONE_US=$(<"$GONE_FILE")
	: "${GONE_US:=$(now_us)}"
}

# Before the server's lease ends. The margin is for a row of its own.
is_stopped_in_time() {
	local margin_ms
	inside_is_gone
	margin_ms=$(((LEASE_END_US - GONE_US) / 1000))
	((margin_ms >= 0)) || wrong "was stopped $((-margin_ms)) ms after the end of the lease"
	echo "margin $margin_ms" >>"$RECORD"
}

# rlock_ends STATUS [LIMIT_US]
rlock_ends() {
	local status=0 at
	at=$(gone 10000 "$RLOCK") || {
		wrong 'rlock does not end'
		return
	}
	wait "$RLOCK" 2>/dev/null || status=$?
	[ "$status" = "$1" ] || wrong "rlock ended with $status, not $1"
	[ $# = 1 ] || ought_by 'rlock ended' "$at" "$2"
}

# caller_ends STATUS
caller_ends() {
	local status=0
	wait "$CALLER" 2>/dev/null || status=$?
	[ "$status" = "$1" ] || wrong "the caller ended with $status, not $1"
}

says_nothing() {
	ought 'something was said' said_nothing
}

says_unreleased() {
	ought 'no warning' said_once "^rlock: $NAME: release failed: "
}

says_lost() {
	ought 'rlock did not report the loss' said_once "^rlock: $NAME: lock lost at [0-9T:+-]+: "
}

# next_enters LIMIT_US [from_end]: the next one has the lock by then. The time from the fault is put on record,
# unless the lock was let go by ourselves.
next_enters() {
	local at status=0
	gone 15000 "$CONTENDER" >/dev/null || {
		wrong 'the next waiter did not acquire the lock'
		return
	}
	wait "$CONTENDER" || status=$?
	[ "$status" = 0 ] || wrong "the next one ended with $status"
	at=$(sed -n 's/ enter .*//p' "$LEDGER" | sed -n 2p)
	ought_by 'the lock was free' "${at:-$(now_us)}" $(($1 + SLACK_MS * 1000))
	[ $# = 2 ] || took $(((${at:-0} - FAULT_US) / 1000))
}

finish() {
	case $OUTCOME in
	unprotected | beside | leaves* | expires | told_late) ;;
	kept) ;; # inside until after the unlock
	*) [ "$(grep -c ' overlap ' "$LEDGER")" = 0 ] || wrong 'two inside' ;;
	esac
	ought 'something of rlock runs on' wait_until 10 nothing_runs
	ought 'keys are left' wait_until 10 no_keys_of_lock
}

# Of a semaphore all permits are free again.
no_keys_of_lock() {
	if [ "$KIND" = sem ]; then
		redis_says "$PERMITS" get "$NAME" &&
			! redis --raw keys "*$NAME*" | grep -qvxF -e "$NAME" -e "rlock_total:{$NAME}" -e ''
	else
		[ -z "$(redis --raw keys "*$NAME*")" ]
	fi
}

# ---- the words of the table: with a command ----

outcome_runs_on() {
	stays_protected
	end_inside
	rlock_ends 0
	says_nothing
	next_enters "$GONE_US" let_go
}

outcome_ends() {
	inside_is_gone
	ought_by 'the command ended' "$GONE_US" $((FAULT_US + (GRACE_MS + SLACK_MS) * 1000))
	rlock_ends $((128 + $(kill -l "$SIGNAL")))
	says_nothing
	next_enters $((GONE_US > BACK_US ? GONE_US : BACK_US))
}

outcome_ends_unheard() {
	inside_is_gone
	ought_by 'the command ended' "$GONE_US" $((FAULT_US + (GRACE_MS + SLACK_MS) * 1000))
	rlock_ends $((128 + $(kill -l "$SIGNAL"))) $((LEASE_END_US + SLACK_MS * 1000))
	# To its last try the server may answer that the lock has expired.
	if [ "$SERVER" != late ] || [ -s "$SAID" ]; then
		says_unreleased
	fi
	next_enters "$LEASE_END_US"
}

# The command, by itself; what it left running is not protected any more.
leave_inside() {
	local pid
	for pid in "${CHILDREN[@]}"; do
		ought 'one of those left running was ended' runs "$pid"
	done
	kill -s KILL "${CHILDREN[@]}"
	inside_is_gone
}

outcome_leaves() {
	rlock_ends $((128 + $(kill -l "$SIGNAL")))
	says_nothing
	next_enters $((FAULT_US > BACK_US ? FAULT_US : BACK_US))
	leave_inside
}

outcome_leaves_unheard() {
	rlock_ends $((128 + $(kill -l "$SIGNAL"))) $((LEASE_END_US + SLACK_MS * 1000))
	if [ "$SERVER" != late ] || [ -s "$SAID" ]; then
		says_unreleased
	fi
	next_enters "$LEASE_END_US"
	leave_inside
}

outcome_stopped() {
	is_stopped_in_time
	[ "$TARGET" != rlock ] || go_on
	# The release of what is lost is tried once at least, and that for a second.
	rlock_ends 76 $((LEASE_END_US + (1000 + SLACK_MS) * 1000))
	says_lost
	next_enters "$LEASE_END_US"
}

outcome_orphan() {
	rlock_ends 137 $((FAULT_US + SLACK_MS * 1000))
	stays_protected
	end_inside
	says_nothing
	next_enters $((GONE_US + 1000000 - SLACK_MS * 1000)) let_go
}

outcome_orphan_stopped() {
	rlock_ends 137 $((FAULT_US + SLACK_MS * 1000))
	is_stopped_in_time
	says_nothing
	next_enters "$LEASE_END_US"
}

outcome_freed_alone() {
	local stopped=("${HIT[@]}")
	stays_protected
	HIT=()
	end_inside
	next_enters "$GONE_US" let_go
	ought 'rlock went on by itself' is_stopped "$RLOCK"
	HIT=("${stopped[@]}")
	go_on
	rlock_ends 0
	says_nothing
}

outcome_unprotected() {
	rlock_ends 137 $((FAULT_US + SLACK_MS * 1000))
	ought 'the renewer runs on' soon 1 is_gone "$RENEWER"
	stays_unprotected
	says_nothing
	kill -s KILL "${INSIDE[@]}"
	inside_is_gone
}

outcome_beside() {
	local continued_us
	stays_unprotected
	continued_us=$(now_us)
	go_on
	inside_is_gone
	ought_by 'the command was stopped' "$GONE_US" $((continued_us + SLACK_MS * 1000))
	rlock_ends 76
	says_lost
}

# ---- the words of the table: without a command ----

# The caller's unlock: UNLOCKED is its status.
unlock() {
	UNLOCKED=0
	rlock unlock --connect-timeout 500ms --pid "$CALLER" "$NAME" >/dev/null 2>"$CELL/unlock-said" || UNLOCKED=$?
}

# unlocked STATUS
unlocked() {
	[ "$UNLOCKED" = "$1" ] || wrong "unlock said $UNLOCKED, not $1: $(cat "$CELL/unlock-said")"
}

# unlock_says_at_last STATUS: an unlock that was not delivered is repeated.
unlock_says_at_last() {
	local tries
	unlock
	for ((tries = 1; tries < 20 && UNLOCKED == 69; tries++)); do
		pause 0.05
		unlock
	done
	unlocked "$1"
}

# unlock_says STATUS
unlock_says() {
	unlock
	unlocked "$1"
}

outcome_kept() {
	local let_go_us
	stays_protected
	go_on
	let_go_us=$(now_us)
	unlock_says 0
	next_enters "$let_go_us" let_go
	let_go
	inside_is_gone
	caller_ends 0
	says_nothing
}

outcome_freed() {
	inside_is_gone
	caller_ends $((128 + $(kill -l "$SIGNAL")))
	says_nothing
	next_enters $(((GONE_US > BACK_US ? GONE_US : BACK_US) + 1000000 - SLACK_MS * 1000))
}

outcome_freed_by_lease() {
	inside_is_gone
	caller_ends $((128 + $(kill -l "$SIGNAL")))
	next_enters "$LEASE_END_US"
}

outcome_told() {
	is_stopped_in_time
	caller_ends 143
	next_enters "$LEASE_END_US"
}

outcome_expires() {
	stays_unprotected
	case $SERVER in
	gone) unlock_says 69 ;;
	late) unlock_says_at_last 76 ;;
	*) unlock_says 76 ;;
	esac
	kill -s KILL "$CALLER"
	inside_is_gone
}

outcome_told_late() {
	local continued_us
	stays_unprotected
	continued_us=$(now_us)
	go_on
	inside_is_gone
	ought_by 'the caller was signalled' "$GONE_US" $((continued_us + SLACK_MS * 1000))
	caller_ends 143
}
