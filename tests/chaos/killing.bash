# A cell of killed.bats: a holder with its processes, another owner that waits, and the fault. What has to come of it is
# kill_outcomes.bash's. Sourced after chaos.bash and proxying.bash.

# What a cell is about (TARGET, SIGNAL, SERVER...) killed.bats says. What is set here is for kill_outcomes.bash as well.
# shellcheck disable=SC2034

LEASE_MS=1000
GRACE_MS=100
# From when on a command is stopped that was not renewed, counted from its last renewal; see LEASES in rlock(7).
LOST_MS=$((LEASE_MS - 2 - 200 - GRACE_MS))
# An outage or a pause that is to change nothing is over by then. What is left is for the renewal: it is tried twenty
# times in a lease, and goes through proxy and server and back, each of which may stall a little less than is told.
HARMLESS_MS=$((LOST_MS - LEASE_MS / 20 - 3 * STALL_MS))
# An answer is under way for no longer.
IN_FLIGHT_MS=40

# ---- time ----

# wait_for_us US: until then, on the clock of `gone`.
wait_for_us() {
	local left_ms=$((($1 - $(now_us)) / 1000))
	((left_ms <= 0)) || let_pass_ms "$left_ms"
}

# ---- the processes that take part ----

# A command with three more processes, two of which are hard to stop, that holds the lock through the proxy.
hold_for_command() {
	local pid session
	in_background sh -c 'exec "$@" 2>"$0"' "$SAID" rlock "$(verb_of "$KIND")" "${OF_SEM[@]}" -t "${LEASE_MS}ms" --grace "${GRACE_MS}ms" \
		"$NAME" -- overlap "$LEDGER" "$(mode_of "$KIND")" -u "$CELL/let-go" -C
	RLOCK=$PID
	soon 30 has_events 4 || return
	wait_until 10 has_renewer "$RLOCK" || return
	RENEWER=$(renewer_of "$RLOCK")
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
	in_background sh -c 'ledger=$1 mode=$2 until=$3; shift 3
		rlock "$@" --pid $$ 2>"$0" && exec overlap "$ledger" "$mode" -u "$until"' "$SAID" \
		"$LEDGER" "$(mode_of "$KIND")" "$CELL/let-go" "${verb/#run/lock}" "${OF_SEM[@]}" -t "${LEASE_MS}ms" "$NAME"
	CALLER=$PID
	soon 30 has_events 1 || return
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
	rlock) pids=("$RLOCK") ;;
	renewer) pids=("$RENEWER") ;;
	both) pids=("$RLOCK" "$RENEWER") ;;
	all) pids=("$RLOCK" "$RENEWER" "${INSIDE[@]}") ;;
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
		# shellcheck disable=SC2086
		proxy $OUTAGE
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
