#!/usr/bin/env bats
# Every process of a lock gets every signal, at any moment of a lease, with the server well, gone, and back
# again: the outcome is the one that stands in kill_matrix. And never is another command inside as long as one
# of COMMAND's processes is, but where keeper and renewer are both killed, or both stopped.

# Each cell is a subshell, and knows that. The table names the functions.
# shellcheck disable=SC2030,SC2031,SC2153,SC2317,SC2329

load chaos
load ../lib/proxying

setup_file() {
	start_server
	metronome 5 "$STALL_MS" >"$BATS_FILE_TMPDIR/stalls" 3>&- &
	export METRONOME=$!
}

teardown_file() {
	kill "$METRONOME"
	stop_server
}

WIDTH=8
LEASE_MS=1000
GRACE_MS=100
# From when on a command is stopped that was not renewed, counted from its last renewal; see LEASES in rlock(7).
LOST_MS=$((LEASE_MS - 2 - 200 - GRACE_MS))
# A machine that does not wake a process in time, for so long, keeps rlock from running as well. What goes
# wrong then is no violation, but is tried again.
STALL_MS=40
# An outage or a pause that is to change nothing is over by then. What is left is for the renewal: it is tried twenty
# times in a lease, and goes through proxy and server and back, each of which may stall a little less than is told.
HARMLESS_MS=$((LOST_MS - LEASE_MS / 20 - 3 * STALL_MS))
# An answer is under way for no longer.
IN_FLIGHT_MS=40
# "At once", on a machine that has more to do.
SLACK_MS=500
TRIES=5
COLUMNS_OF_TABLE=(up gone back late)
WITH_SEM=("${KINDS[@]}" sem)

# ---- the table ----

# rows_of TARGET...: their rows.
rows_of() {
	local IFS='|'
	grep -E "^($*) " "$BATS_TEST_DIRNAME/kill_matrix"
}

# matrix COUNT KIND TARGET...: so many cells of these targets' rows; of fewer than there are, some of all sorts.
matrix() {
	local count=$1 kind=$2
	mapfile -t ROWS < <(rows_of "${@:3}")
	in_cells "$(scaled "$count")" "$WIDTH" cell "$kind"
}

# cell NUMBER KIND|any: numbers go through the cells by a stride that has no factor in common with 4 columns and
# 30 or 12 rows.
cell() {
	local cells=$((4 * ${#ROWS[@]})) index kind=$2 words
	index=$((($1 - 1) * 37 % cells))
	[ "$kind" != any ] || kind=${WITH_SEM[(index + index / 4 + ($1 - 1) / cells) % 5]}
	read -ra words <<<"${ROWS[index / 4]}"
	TARGET=${words[0]} SIGNAL=${words[1]} OUTCOME=${words[2 + index % 4]}
	SERVER=${COLUMNS_OF_TABLE[index % 4]}
	KIND=$kind
	OUTAGE='cut'
	(((index + index / 4 + ($1 - 1) / cells + ${#kind}) % 2)) || OUTAGE='blackhole'
	for ((index = 0; index < TRIES; index++)); do
		try_cell && return
		start_anew
	done
	echo "never came about in $TRIES tries, the machine was too busy: $WHAT"
	return 1
}

# Fails, and puts nothing on record, when the machine was too busy.
try_cell() {
	local try scenario=$RECORD RECORD=$CELL/record start_us
	start_us=$(now_us)
	SEED=$SRANDOM RANDOM=$SEED
	# All permits of a semaphore, one or several: no other command is inside.
	PERMITS=$((1 + RANDOM % 3)) OF_SEM=()
	[ "$KIND" != sem ] || OF_SEM=(--permits "$PERMITS" --take "$PERMITS")
	WHAT="$TARGET $SIGNAL, server $SERVER by $OUTAGE, $KIND, seed $SEED"
	try=$BASHPID.$SEED
	NAME=$NAME.$try. LEDGER=$CELL/ledger.$try SAID=$CELL/said
	# Never a signal to the process that was meant the time before.
	unset -v KEEPER RENEWER COMMAND GRANDCHILD CALLER LONE_RENEWER HIT
	CHILDREN=()
	start_proxy && "hold_for_$(holder)" || return
	contend
	let_pass_ms $((RANDOM % (LEASE_MS / 3)))
	# A pause, or an outage, that was longer than ordered is another fault.
	inflict || return
	repeated
	"$OUTCOME"
	finish
	if grep -qE '^(violation|broken) ' "$RECORD" && ! runs_smoothly_since "$start_us"; then
		grep -E '^(violation|broken) ' "$RECORD" >>"$BATS_FILE_TMPDIR/excused"
		return 1
	fi
	cat "$RECORD" >>"$scenario"
}

# runs_smoothly_since US: as far as the metronome has found.
runs_smoothly_since() {
	awk -v since="$1" '$1 > since { stalls++ } END { exit (stalls > 0) }' "$BATS_FILE_TMPDIR/stalls"
}

holder() {
	case $TARGET in
	lone | caller) echo caller ;;
	*) echo command ;;
	esac
}

start_anew() {
	echo "$WHAT" >>"$BATS_FILE_TMPDIR/again"
	end_cell
	# The proxy's sockets, and let-go; not what the cell says itself.
	find "$CELL" -mindepth 1 ! -name cell-said -delete
}

# ---- time ----

now_us() {
	gone 0
}

# wait_for_us US: until then, on the clock of `gone`.
wait_for_us() {
	local left_ms=$((($1 - $(now_us)) / 1000))
	((left_ms <= 0)) || let_pass_ms "$left_ms"
}

# ---- the processes that take part ----

# A command with three more processes, two of which are hard to stop, that holds the lock through the proxy.
hold_for_command() {
	local pid session
	# shellcheck disable=SC2016
	in_background sh -c 'exec "$@" 2>"$0"' "$SAID" rlock "$(verb_of "$KIND")" "${OF_SEM[@]}" -t "${LEASE_MS}ms" --grace "${GRACE_MS}ms" \
		"$NAME" -- overlap "$LEDGER" "$(mode_of "$KIND")" -u "$CELL/let-go" -C
	KEEPER=$PID
	soon 10 has_events 4 || return
	wait_until 10 has_renewer "$KEEPER" || return
	RENEWER=$(renewer_of "$KEEPER")
	COMMAND=$(sed -n 's/.* enter .* //p' "$LEDGER")
	mapfile -t CHILDREN < <(sed -n 's/.* child .* //p' "$LEDGER")
	for pid in "${CHILDREN[@]}"; do
		read -r _ _ _ _ _ session _ <"/proc/$pid/stat"
		[ "$session" != "$pid" ] || GRANDCHILD=$pid
	done
	INSIDE=("$COMMAND" "${CHILDREN[@]}")
	[ -n "$GRANDCHILD" ]
}

# A process that has the lock for itself through the proxy.
hold_for_caller() {
	local verb
	verb=$(verb_of "$KIND")
	# shellcheck disable=SC2016
	in_background sh -c 'ledger=$1 mode=$2 until=$3; shift 3
		rlock "$@" --pid $$ 2>"$0" && exec overlap "$ledger" "$mode" -u "$until"' "$SAID" \
		"$LEDGER" "$(mode_of "$KIND")" "$CELL/let-go" "${verb/#run/lock}" "${OF_SEM[@]}" -t "${LEASE_MS}ms" "$NAME"
	CALLER=$PID
	soon 10 has_events 1 || return
	LONE_RENEWER=$(renewers)
	INSIDE=("$CALLER")
	[ -n "$LONE_RENEWER" ]
}

# Another owner waits for the lock meanwhile, straight on the server.
contend() {
	local kind=$KIND
	case $KIND in
	read) kind='write' ;;
	write) kind='read' ;;
	esac
	in_background env RLOCK_URL="unix://$SERVER_SOCKET" rlock "$(verb_of "$kind")" "${OF_SEM[@]}" -t "${LEASE_MS}ms" \
		-w 20s "$NAME" -- \
		overlap "$LEDGER" "$(mode_of "$kind")"
	CONTENDER=$PID
}

# ---- the fault ----

send_signal() {
	local pids=()
	case $TARGET in
	keeper) pids=("$KEEPER") ;;
	renewer) pids=("$RENEWER") ;;
	both) pids=("$KEEPER" "$RENEWER") ;;
	command) pids=("$COMMAND") ;;
	grandchild) pids=("$GRANDCHILD") ;;
	lone) pids=("$LONE_RENEWER") ;;
	caller) pids=("$CALLER") ;;
	esac
	kill -s "${SIGNAL/PAUSE/STOP}" "${pids[@]}" && injected
	HIT=("${pids[@]}")
}

lose_server() {
	[ "$SERVER" != up ] || return 0
	if [ "$OUTAGE" = cut ]; then
		proxy refuse on
		proxy cut
	else
		proxy blackhole on
	fi
	injected
}

# Both at the same moment, in any order, but that the server is lost first where it is to miss a release that comes
# at once with the signal; and what belongs to it: the pause, the server's return. Sets FAULT_US,
# LEASE_END_US (on the server, if nothing renews), BACK_US. Fails when that took longer than it was to take.
inflict() {
	local left_ms renewed_us known_us
	GONE_FILE=$CELL/gone.$SEED
	gone 15000 "${INSIDE[@]}" >"$GONE_FILE" &
	GONE_JOB=$!
	FAULT_US=$(now_us)
	if [ "$OUTCOME" != leaves_unheard ] && ((RANDOM % 2)); then
		send_signal
		lose_server
	else
		lose_server
		send_signal
	fi
	LEASE_END_US=$(now_us)
	left_ms=$(lease_left_ms)
	((LEASE_END_US += left_ms * 1000))
	renewed_us=$((LEASE_END_US - LEASE_MS * 1000))
	# The answer to a renewal that came right before the outage was lost with it, perhaps: rlock counts from the
	# one before.
	known_us=$renewed_us
	((FAULT_US - renewed_us > IN_FLIGHT_MS * 1000)) || known_us=$((renewed_us - LEASE_MS * 1000 / 3))
	# One that was released before the outage needs no renewal.
	((left_ms >= 0)) || known_us=$FAULT_US
	BACK_US=0
	# The renewal before was in time, so that there is time for what the signal does. (Or the lock is free already.)
	((left_ms < 0 || FAULT_US - renewed_us < (LEASE_MS / 3 + 70) * 1000)) || return
	if [ "$SIGNAL" = PAUSE ]; then
		let_pass_ms $((RANDOM % 100 + 50))
		go_on
		(($(now_us) - FAULT_US < LEASE_MS * 1000 / 3)) || return
	fi
	case $SERVER in
	back)
		wait_for_us $((FAULT_US + (known_us + HARMLESS_MS * 1000 - FAULT_US) * (RANDOM % 100) / 100))
		come_back
		((BACK_US < known_us + HARMLESS_MS * 1000)) || return
		;;
	late)
		(
			wait_for_us $((LEASE_END_US + RANDOM % 200 * 1000))
			proxy pass
		) &
		;;
	esac
}

come_back() {
	proxy pass
	BACK_US=$(now_us)
}

# How much of the lease the server has; less than 0: the lock is free.
lease_left_ms() {
	if [ "$KIND" = sem ]; then
		redis eval 'local first, now = redis.call("zrange", KEYS[1], 0, 0, "withscores"), redis.call("time")
			return first[2] and first[2] - now[1] * 1000 - math.floor(now[2] / 1000) or -2' 1 "rlock_ends:{$NAME}"
	else
		redis pttl "$NAME"
	fi
}

has_holder() {
	if [ "$KIND" = sem ]; then
		redis_says "$PERMITS" zcard "{$NAME}:timeout"
	else
		is_held "$NAME"
	fi
}

# Whatever was stopped.
go_on() {
	kill -s CONT "${HIT[@]}" 2>/dev/null || :
}

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
	ought 'the lock was had by somebody else' entered 1
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
	at=$(gone 10000 "$KEEPER") || {
		wrong 'rlock does not end'
		return
	}
	wait "$KEEPER" 2>/dev/null || status=$?
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
	ought 'the loss was not told' said_once "^rlock: $NAME: lock lost at [0-9T:+-]+: "
}

# next_enters LIMIT_US [from_end]: the next one has the lock by then. The time from the fault is put on record,
# unless the lock was let go by ourselves.
next_enters() {
	local at status=0
	gone 15000 "$CONTENDER" >/dev/null || {
		wrong 'the next one waits for ever'
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
	ought 'something of rlock runs on' wait_until 3 nothing_runs
	ought 'keys are left' wait_until 3 no_keys_of_lock
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

runs_on() {
	stays_protected
	end_inside
	rlock_ends 0
	says_nothing
	next_enters "$GONE_US" let_go
}

ends() {
	inside_is_gone
	ought_by 'the command ended' "$GONE_US" $((FAULT_US + (GRACE_MS + SLACK_MS) * 1000))
	rlock_ends $((128 + $(kill -l "$SIGNAL")))
	says_nothing
	next_enters $((GONE_US > BACK_US ? GONE_US : BACK_US))
}

ends_unheard() {
	inside_is_gone
	ought_by 'the command ended' "$GONE_US" $((FAULT_US + (GRACE_MS + SLACK_MS) * 1000))
	rlock_ends $((128 + $(kill -l "$SIGNAL"))) $((LEASE_END_US + SLACK_MS * 1000))
	# To its last try the server may answer that the lock has freed itself.
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

leaves() {
	rlock_ends $((128 + $(kill -l "$SIGNAL")))
	says_nothing
	next_enters $((FAULT_US > BACK_US ? FAULT_US : BACK_US))
	leave_inside
}

leaves_unheard() {
	rlock_ends $((128 + $(kill -l "$SIGNAL"))) $((LEASE_END_US + SLACK_MS * 1000))
	if [ "$SERVER" != late ] || [ -s "$SAID" ]; then
		says_unreleased
	fi
	next_enters "$LEASE_END_US"
	leave_inside
}

stopped() {
	is_stopped_in_time
	[ "$TARGET" != keeper ] || go_on
	# The release of what is lost is tried once at least, and that for a second.
	rlock_ends 76 $((LEASE_END_US + (1000 + SLACK_MS) * 1000))
	says_lost
	next_enters "$LEASE_END_US"
}

orphan() {
	rlock_ends 137 $((FAULT_US + SLACK_MS * 1000))
	stays_protected
	end_inside
	says_nothing
	next_enters $((GONE_US + 1000000 - SLACK_MS * 1000)) let_go
}

orphan_stopped() {
	rlock_ends 137 $((FAULT_US + SLACK_MS * 1000))
	is_stopped_in_time
	says_nothing
	next_enters "$LEASE_END_US"
}

unreleased() {
	local keeper=("${HIT[@]}")
	stays_protected
	HIT=()
	end_inside
	next_enters $((GONE_US + LEASE_MS * 1000)) let_go
	HIT=("${keeper[@]}")
	go_on
	rlock_ends 0
	# When its stream was cut meanwhile it may not open another one: the lock has freed itself.
	if [ "$SERVER" = back ] && [ -s "$SAID" ]; then
		says_unreleased
	else
		says_nothing
	fi
}

unprotected() {
	rlock_ends 137 $((FAULT_US + SLACK_MS * 1000))
	ought 'the renewer runs on' soon 1 is_gone "$RENEWER"
	stays_unprotected
	says_nothing
	kill -s KILL "${INSIDE[@]}"
	inside_is_gone
}

beside() {
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

# unlock_says_at_last STATUS: what was not delivered is asked for again.
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

kept() {
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

freed() {
	inside_is_gone
	caller_ends $((128 + $(kill -l "$SIGNAL")))
	says_nothing
	next_enters $(((GONE_US > BACK_US ? GONE_US : BACK_US) + 1000000 - SLACK_MS * 1000))
}

freed_by_lease() {
	inside_is_gone
	caller_ends $((128 + $(kill -l "$SIGNAL")))
	next_enters "$LEASE_END_US"
}

told() {
	is_stopped_in_time
	caller_ends 143
	next_enters "$LEASE_END_US"
}

expires() {
	stays_unprotected
	case $SERVER in
	gone) unlock_says 69 ;;
	late) unlock_says_at_last 76 ;;
	*) unlock_says 76 ;;
	esac
	kill -s KILL "$CALLER"
	inside_is_gone
}

told_late() {
	local continued_us
	stays_unprotected
	continued_us=$(now_us)
	go_on
	inside_is_gone
	ought_by 'the caller was told' "$GONE_US" $((continued_us + SLACK_MS * 1000))
	caller_ends 143
}

# ---- the scenarios ----

# end_matrix [FILE]: the margins go to that file.
end_matrix() {
	[ $# = 0 ] || sed -n 's/^margin //p' "$RECORD" >>"$1"
	local again=0 excused=0
	if [ -e "$BATS_FILE_TMPDIR/again" ]; then
		again=$(wc -l <"$BATS_FILE_TMPDIR/again")
		rm "$BATS_FILE_TMPDIR/again"
	fi
	if [ -e "$BATS_FILE_TMPDIR/excused" ]; then
		excused=$(wc -l <"$BATS_FILE_TMPDIR/excused")
		sed 's/^/# the machine stood still meanwhile: /' "$BATS_FILE_TMPDIR/excused" >&3
		rm "$BATS_FILE_TMPDIR/excused"
	fi
	end_scenario "from the fault to the next holder; $again cells done again, for $excused things that went wrong"
}

with_command() {
	begin_scenario "killed and stopped, $1"
	matrix 120 "$1" keeper renewer both command grandchild
	end_matrix "$BATS_FILE_TMPDIR/margins"
}

@test "killed and stopped, plain" {
	with_command plain
}

@test "killed and stopped, fair" {
	with_command fair
}

@test "killed and stopped, read" {
	with_command read
}

@test "killed and stopped, write" {
	with_command write
}

@test "killed and stopped, sem" {
	with_command sem
}

@test "killed and stopped, without a command" {
	begin_scenario 'killed and stopped, without a command'
	matrix 48 any lone caller
	end_matrix
}

# What the scenarios above have found.
@test "killed and stopped, margin" {
	local margin
	begin_scenario 'killed and stopped, margin'
	while read -r margin; do
		repeated
		injected
		took "$margin"
		((margin >= 0)) || violated "$margin ms"
	done <"$BATS_FILE_TMPDIR/margins"
	end_scenario 'from the last process to the end of the lease' least
}
