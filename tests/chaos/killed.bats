#!/usr/bin/env bats
# Every process of a lock gets every signal, at any moment of a lease, while the server is up, gone, or back again. The outcome must
# be that of kill_matrix. No other command may be inside while a process of COMMAND is, unless rlock and its renewer are both
# killed, or both stopped.
#
# A cell is one trial: a signal to a process, and a state of the server. This file runs the cells. kill_judge.bash checks their
# outcome.

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
# Commands for the proxy: close the connections; pass nothing in either direction; or pass no request.
OUTAGES=('cut' 'blackhole on' 'blackhole on up')
WITH_SEM=("${KINDS[@]}" sem)

LEASE_MS=1000
GRACE_MS=100
# How long after the last successful renewal COMMAND gets SIGTERM: the lease, less 2 ms of drift, the 200 ms from SIGKILL to its
# end, and the grace time (LEASES in rlock(7)).
LOST_MS=$((LEASE_MS - 2 - 200 - GRACE_MS))
# An outage or a pause that must change nothing ends at the latest this long after the last renewal. The rest of LOST_MS is needed
# for the next renewal: rlock attempts one twenty times in a lease, and the processes on the way, such as proxy and server, can
# each stall for almost STALL_MS without a report of the metronome.
HARMLESS_US=$(((LOST_MS - LEASE_MS / 20 - 3 * STALL_MS) * 1000))
# Longest time that a reply is on its way.
IN_FLIGHT_US=40000

# ---- the processes that take part ----

# hold_for_command: starts an rlock that holds the lock for a command, over the proxy. The command has three more processes, two
# of which are hard to stop.
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

# hold_for_caller: starts a process that acquires the lock for itself (--pid), through the proxy.
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

# contend: starts another owner that waits for the lock, without the proxy.
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

# wait_for_us US: waits until the time US.
wait_for_us() {
	local left_ms=$((($1 - $(now_us)) / 1000))
	((left_ms <= 0)) || let_pass_ms "$left_ms"
}

# inflict: sends the signal and loses the server at the same moment, in random order. The server is lost first if it must miss the
# release that the signal causes. Then ends the pause, or brings the server back. Sets FAULT_US; BACK_US, 0 unless the server is
# back; and LEASE_END_US, when the lease ends on the server if nothing renews it, FAULT_US if the lock is already free. Fails if a
# step took longer than planned.
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
		# The lock was released before the server was lost: there is no lease that an outage could end.
		LEASE_END_US=$FAULT_US
	else
		renewed_us=$((LEASE_END_US - LEASE_MS * 1000))
		# Fail if the last renewal was late: what the signal causes needs the rest of the lease.
		((FAULT_US - renewed_us < (LEASE_MS / 3 + 70) * 1000)) || return
		known_us=$renewed_us
		# The reply to a renewal right before the outage may be lost. rlock then counts the lease from the renewal before
		# that one.
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

# ---- run a cell: one signal, to one process, in one state of the server ----

# cell NUMBER KIND|any: runs one cell: a row of ROWS in one state of the server. Successive NUMBERs choose cells that are 37
# apart, and so choose all: 37 has no factor in common with the number of cells, which is 4 states times 31 or 12 rows. A cell for
# which the machine was too busy is tried again.
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
		# Delete the proxy's sockets and the end-commands, but keep the cell's own messages.
		find "$CELL" -mindepth 1 ! -name cell-stderr -delete
	done
	# Fail if every attempt failed although the machine was not busy. Otherwise the cell has tested nothing, and does not
	# fail.
	runs_smoothly_since "$begun_us" && return 1
	echo "# the machine was too busy for: $WHERE" >&3
}

# try_cell: runs the cell once. Fails, and records nothing, if the machine was too busy.
try_cell() {
	local scenario=$RECORD RECORD=$CELL/record start_us
	start_us=$(now_us)
	NAME=$NAME${TRY}x
	# Forget the processes of the attempt before, which must get no signal.
	unset -v RLOCK RENEWER COMMAND GRANDCHILD CALLER LONE_RENEWER HIT
	OTHERS=()
	# If the lock is a semaphore, acquire all its permits, one to three, so that no other command can be inside.
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
	# If a pause or an outage lasted longer than planned, it was another fault than that of the cell: try again.
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

# matrix COUNT KIND|any TARGET|...: runs COUNT cells. A cell is a row of kill_matrix for one of these targets, with one of its
# signals, and one state of the server. If COUNT is less than the number of cells, those that are run still differ in all of
# these.
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

@test "killed and stopped: each signal to each process of a lock has the result that kill_matrix lists" {
	local kind
	for kind in "${WITH_SEM[@]}"; do
		begin_scenario "killed and stopped, $kind"
		matrix 124 "$kind" 'rlock|renewer|both|all|command|grandchild'
	done
}

@test "killed and stopped, without a command: each signal to the caller or its renewer has the result that kill_matrix lists" {
	begin_scenario 'killed and stopped, without a command'
	matrix 48 any 'lone|caller'
}
