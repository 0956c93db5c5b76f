#!/usr/bin/env bats
# Every process of a lock gets every signal, at any moment of a lease, with the server well, gone, and back
# again: the outcome is the one that stands in kill_matrix. And never is another command inside as long as one
# of COMMAND's processes is, but where rlock and its renewer are both killed, or both stopped.
#
# This file has the cells, and how often each is tried. kill_judge.bash looks at what came of one.

load chaos
load ../lib/proxying
load kill_judge

setup_file() {
	start_server
	start_metronome
}

teardown_file() {
	stop_metronome
	stop_server
}

TRIES=8
SERVERS=(up gone back late)
# Nothing passes in either direction, or no request does.
OUTAGES=('cut' 'blackhole on' 'blackhole on up')
WITH_SEM=("${KINDS[@]}" sem)

LEASE_MS=1000
GRACE_MS=100
# From when on a command is stopped that was not renewed, counted from its last renewal; see LEASES in rlock(7).
LOST_MS=$((LEASE_MS - 2 - 200 - GRACE_MS))
# An outage or a pause that is to change nothing is over by then. What is left is for the renewal: it is tried twenty
# times in a lease, and goes through proxy and server and back, each of which may stall a little less than is told.
HARMLESS_US=$(((LOST_MS - LEASE_MS / 20 - 3 * STALL_MS) * 1000))
# An answer is under way for no longer.
IN_FLIGHT_US=40000

# ---- the processes that take part ----

# hold_for_command: one with three more processes, two of which are hard to stop, holds the lock through the proxy.
hold_for_command() {
	local pid
	start_holder_family holder "$KIND" "$LEDGER" "${OF_SEM[@]}" -t "${LEASE_MS}ms" --grace "${GRACE_MS}ms" || return
	RLOCK=$HOLDER
	wait_until 10 has_renewer "$RLOCK" || return
	RENEWER=${RENEWERS[0]}
	mapfile -t INSIDE < <(inside "$LEDGER")
	COMMAND=$(sed -n 's/.* enter .* //p' "$LEDGER")
	for pid in "${INSIDE[@]}"; do
		[ "$pid" = "$COMMAND" ] || OTHERS+=("$pid")
		[ "$(ps -o sid= -p "$pid" | tr -d ' ')" != "$pid" ] || GRANDCHILD=$pid
	done
	[ "$GRANDCHILD" ]
}

# hold_for_caller: a process has the lock for itself through the proxy.
hold_for_caller() {
	in_background sh -c 'ledger=$1 mode=$2 until=$3; shift 3
		rlock "$@" --pid $$ 2>"$0" && exec overlap "$ledger" "$mode" -u "$until"' "$CELL/stderr-holder" \
		"$LEDGER" "$(mode_of "$KIND")" "$CELL/leave-holder" "$(verb_without_command "$KIND")" "${OF_SEM[@]}" -t "${LEASE_MS}ms" "$NAME"
	CALLER=$PID
	wait_until 30 entered 1 || return
	LONE_RENEWER=$(renewers)
	INSIDE=("$CALLER")
	[ "$LONE_RENEWER" ]
}

# Another owner waits for the lock meanwhile, straight on the server.
contend() {
	RLOCK_URL=unix://$SERVER_SOCKET start_contender contender "$(opposite_kind "$KIND")" "$LEDGER" '-f 0' "${OF_SEM[@]}" -t "${LEASE_MS}ms" -w 20s
	CONTENDER=$PID
}

has_holder() {
	if [ "$KIND" = sem ]; then
		redis_says "$PERMITS" zcard "{$NAME}:timeout"
	else
		is_held "$NAME"
	fi
}

# ---- the fault ----

send_signal() {
	case $TARGET in
	rlock) HIT=("$RLOCK") ;;
	renewer) HIT=("$RENEWER") ;;
	both) HIT=("$RLOCK" "$RENEWER") ;;
	all) HIT=("$RLOCK" "$RENEWER" "${INSIDE[@]}") ;;
	command) HIT=("$COMMAND") ;;
	grandchild) HIT=("$GRANDCHILD") ;;
	lone) HIT=("$LONE_RENEWER") ;;
	caller) HIT=("$CALLER") ;;
	esac
	kill -s "${SIGNAL/PAUSE/STOP}" "${HIT[@]}" && injected
}

lose_server() {
	[ "$SERVER" != up ] || return 0
	[ "$OUTAGE" != cut ] || proxy refuse on
	# shellcheck disable=SC2086
	proxy $OUTAGE
	injected
}

# wait_for_us US: until then.
wait_for_us() {
	local left_ms=$((($1 - $(now_us)) / 1000))
	((left_ms <= 0)) || let_pass_ms "$left_ms"
}

# Both at the same moment, in any order, but that the server is lost first where it is to miss a release that comes
# at once with the signal; and what belongs to it: the pause, the server's return. Sets FAULT_US, LEASE_END_US (on the server, if
# nothing renews; the fault, when it is free already), BACK_US. Fails when that took longer than it was to take.
inflict() {
	local renewed_us known_us
	BACK_US=0
	gone 15000 "${INSIDE[@]}" >gone-inside &
	GONE_JOB=$!
	gone 20000 "${RLOCK:-$CALLER}" >gone-rlock &
	ENDED_JOB=$!
	FAULT_US=$(now_us)
	if [ "$OUTCOME" != leaves_unheard ] && ((RANDOM % 2)); then
		send_signal && lose_server
	else
		lose_server && send_signal
	fi || return
	LEASE_END_US=$(lease_end_us)
	known_us=$FAULT_US
	if ((LEASE_END_US == 0)); then
		# What was released before the outage needs no renewal.
		LEASE_END_US=$FAULT_US
	else
		renewed_us=$((LEASE_END_US - LEASE_MS * 1000))
		# The renewal before was in time, so that there is time for what the signal does.
		((FAULT_US - renewed_us < (LEASE_MS / 3 + 70) * 1000)) || return
		known_us=$renewed_us
		# The answer to a renewal that came right before the outage was lost with it, perhaps: rlock counts from the one before.
		((FAULT_US - renewed_us > IN_FLIGHT_US)) || known_us=$((renewed_us - LEASE_MS * 1000 / 3))
	fi
	if [ "$SIGNAL" = PAUSE ]; then
		draw 50 150
		let_pass_ms "$DRAWN"
		go_on
		(($(now_us) - FAULT_US < LEASE_MS * 1000 / 3)) || return
	fi
	if [ "$SERVER" = back ]; then
		wait_for_us $((FAULT_US + (known_us + HARMLESS_US - FAULT_US) * (RANDOM % 100) / 100))
		proxy pass
		BACK_US=$(now_us)
		((BACK_US < known_us + HARMLESS_US)) || return
	elif [ "$SERVER" = late ]; then
		(wait_for_us $((LEASE_END_US + RANDOM % 200 * 1000)) && proxy pass) &
	fi
}

# ---- cells ----

# cell NUMBER KIND|any: numbers go through the cells of ROWS by a stride that has no factor in common with 4 columns and
# 31 or 12 rows. What the machine was too busy for is tried again.
cell() {
	local cells=$((4 * ${#ROWS[@]})) index kind=$2 words begun_us
	index=$((($1 - 1) * 37 % cells))
	[ "$kind" != any ] || kind=${WITH_SEM[(index + index / 4 + ($1 - 1) / cells) % 5]}
	read -ra words <<<"${ROWS[index / 4]}"
	TARGET=${words[0]} SIGNAL=${words[1]} OUTCOME=${words[2 + index % 2]} KIND=$kind
	SERVER=${SERVERS[index % 4]}
	OUTAGE=${OUTAGES[(index + index / 4 + ($1 - 1) / cells + ${#kind}) % 3]}
	WHERE="$TARGET $SIGNAL, server $SERVER by $OUTAGE, $KIND, $WHERE"
	begun_us=$(now_us)
	for ((TRY = 1; TRY <= TRIES; TRY++)); do
		try_cell && return
		end_cell
		# The proxy's sockets, and end-commands; not what the cell says itself.
		find "$CELL" -mindepth 1 ! -name cell-stderr -delete
	done
	# On a machine that is busy all the time nothing can be put to the test.
	runs_smoothly_since "$begun_us" && return 1
	echo "# the machine was too busy for: $WHERE" >&3
}

# Fails, and puts nothing on record, when the machine was too busy.
try_cell() {
	local scenario=$RECORD RECORD=$CELL/record start_us
	start_us=$(now_us)
	NAME=$NAME$TRY.
	# Never a signal to the process that was meant the time before.
	unset -v RLOCK RENEWER COMMAND GRANDCHILD CALLER LONE_RENEWER HIT
	OTHERS=()
	# All permits of a semaphore, one or several: no other command is inside.
	draw 1 3
	PERMITS=$DRAWN OF_SEM=() KEPT=
	[ "$KIND" != sem ] || OF_SEM=(--permits "$PERMITS" --take "$PERMITS") KEPT="$NAME|rlock_total:{$NAME}"
	start_proxy || return
	case $TARGET in
	lone | caller) hold_for_caller ;;
	*) hold_for_command ;;
	esac || return
	contend
	let_some_pass $((LEASE_MS / 3))
	# A pause, or an outage, that was longer than ordered is another fault.
	inflict || return
	repeated
	judge
	nothing_is_left
	if grep -qE '^(violation|broken) ' "$RECORD" && ! runs_smoothly_since "$start_us"; then
		grep -E '^(violation|broken) ' "$RECORD" | sed 's/^/# the machine stood still meanwhile: /' >&3
		return 1
	fi
	cat "$RECORD" >>"$scenario"
}

# matrix COUNT KIND TARGET|...: so many cells of these targets' rows; of fewer than there are, some of all sorts.
matrix() {
	local target signals outcomes signal
	ROWS=()
	while read -r target signals outcomes; do
		for signal in ${signals//,/ }; do
			ROWS+=("$target $signal $outcomes")
		done
	done < <(grep -E "^($3) " "$BATS_TEST_DIRNAME/kill_matrix")
	in_cells "$(scaled "$1")" 8 cell "$2"
	end_scenario 'from the fault to the next holder'
}

@test "killed and stopped" {
	local kind
	for kind in "${WITH_SEM[@]}"; do
		begin_scenario "killed and stopped, $kind"
		matrix 124 "$kind" 'rlock|renewer|both|all|command|grandchild'
	done
}

@test "killed and stopped, without a command" {
	begin_scenario 'killed and stopped, without a command'
	matrix 48 any 'lone|caller'
}
