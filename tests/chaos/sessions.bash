# What one does with a lock, for network.bats: each session_X is calls of rlock through the proxy, one of which meets a
# fault, and looks at what came of them. Sourced after chaos.bash and proxying.bash.

# What a session is about (KIND, FAULT, WHAT...) network.bats says.
# shellcheck disable=SC2034

SESSIONS=(run nested names fence at_least renewed process_lock process_lock_fence owner waits busy gives_up force)

LEASE_S=3
# Of what nothing renews, and what is released.
LONG_S=60
# What it has to do by itself aside: as long as an answer may take (--connect-timeout).
CALL_LIMIT_MS=8000

# ---- what a cell looks at ----

# wrong TEXT: a violation, with the faults that it came of.
wrong() {
	violated "$WHAT: $1"
}

# The hold counts of all the cell's locks.
COUNT_HOLDS='
	local counts = {}
	for _, lock in ipairs(KEYS) do
		for _, value in ipairs(redis.call("HVALS", lock)) do
			counts[#counts + 1] = tonumber(value)
		end
	end
	return table.concat(counts, " ")'

hold_counts() {
	redis eval "$COUNT_HOLDS" 2 "$LOCK" "$LOCK.b"
}

# The command under the lock: that it runs and what the hold counts are then is written down, and the witness looks
# whether it is alone. Its arguments are those of the witness.
COMMAND='
	echo "$LABEL" >>"$CELL/ran"
	redis-cli -s "$SERVER_SOCKET" eval "$COUNT_HOLDS" 2 "$LOCK" "$LOCK.b" >>"$CELL/counts"
	echo "${RLOCK_TOKEN-}" >>"$CELL/tokens"
	exec overlap "$@"'

# calls STATUSES COMMAND [ARG...]: one call of rlock, which ends with one of these, in time, and says one line when
# it fails and nothing when not. Sets STATUS; LABEL tells calls apart that are side by side.
calls() {
	local allowed=$1 start=${EPOCHREALTIME/./} said=said-$LABEL ms
	shift
	STATUS=0
	timeout -k 1 30 "$@" 2>"$said" || STATUS=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000))
	took $((ms > OWN_MS ? ms - OWN_MS : 0))
	((ms <= OWN_MS + CALL_LIMIT_MS)) || wrong "$2 took $ms ms"
	[[ " $allowed " == *" $STATUS "* ]] || wrong "$2 ended with $STATUS: $(tr '\n' ';' <"$said")"
	says_what_it_should "$said" || wrong "$2 ended with $STATUS, and said: $(tr '\n' ';' <"$said")"
}

says_what_it_should() {
	if [ "$STATUS" = "$SILENT" ]; then
		[ ! -s "$1" ]
	else
		has_lines "$1" 1 && grep -qE '^rlock: .' "$1"
	fi
}

# ends STATUS PID VISITOR: what is in the background, where no time is limited but by timeout(1), ends so.
ends() {
	local status=0
	wait "$2" || status=$?
	[ "$status" = "$1" ] || wrong "$3 ended with $status"
}

# The statuses of a call that asks once. A slow reply is as good as any.
once() {
	[ "$FAULT" = trickle ] && echo 0 || echo 0 69
}

# asks STATUSES COMMAND [ARG...]: of a call that asks once. The same call again ends with one of these.
asks() {
	local after=$1
	shift
	calls "$(once)" "$@"
	[ "$STATUS" != 69 ] || calls "$after" "$@"
}

# ran TIMES COUNTS: the command did, and found these hold counts, a regular expression.
ran() {
	local times
	times=$(wc -l <"$CELL/ran")
	[ "$times" = "$1" ] || wrong "the command ran $times times"
	[ "$times" = 0 ] || ! grep -qvxE "$2" "$CELL/counts" || wrong "hold counts: $(sort -u "$CELL/counts")"
}

is_held_so() {
	[ "$(hold_counts)" = "$1" ] || wrong "hold counts: $(hold_counts)"
}

no_keys_of_cell() {
	local left
	left=$(redis --raw keys "*$LOCK*" | grep -v '^redisson_lock_token:')
	[ -z "$left" ] || {
		echo "$left"
		return 1
	}
}

# ---- what one does with a lock ----

session_run() {
	calls 0 rlock "$VERB" -t "$LEASE_S" "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 1
}

session_nested() {
	calls 0 rlock "$VERB" -t "$LEASE_S" "$LOCK" -- \
		rlock "$VERB" -t "$LEASE_S" "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 2
}

session_names() {
	calls 0 rlock "$VERB" -t "$LEASE_S" "$LOCK" "$LOCK.b" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 "1 1"
}

session_fence() {
	case $KIND in
	read | write) return ;;
	esac
	calls 0 rlock "$VERB" -t "$LEASE_S" --fence "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 1
	[ ! -s tokens ] || grep -qxE '[0-9]+' tokens || wrong "tokens: $(cat tokens)"
}

session_at_least() {
	calls 0 rlock "$VERB" -t "$LEASE_S" --at-least 1s "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 1
}

# Of a lease that is renewed once meanwhile, and that leaves time for another try.
session_renewed() {
	OWN_MS=1200
	calls 0 rlock "$VERB" -t 3s "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE" -f 1200000
	ran 1 1
}

session_process_lock() {
	calls 0 rlock "${VERB/#run/lock}" -t "$LEASE_S" --pid "$BASHPID" "$LOCK"
	[ "$STATUS" = 0 ] || return 0
	is_held_so 1
	asks 0 rlock renew "$LOCK" >left
	is_held_so 1
	calls 0 rlock unlock "$LOCK"
}

session_process_lock_fence() {
	local fence=()
	case $KIND in
	plain | fair) fence=(--fence) ;;
	esac
	calls 0 rlock "${VERB/#run/lock}" -t "$LEASE_S" "${fence[@]}" --pid "$BASHPID" "$LOCK" "$LOCK.b" >token
	[ "$STATUS" = 0 ] || return 0
	[ ${#fence[@]} -eq 0 ] || [ "$(grep -cxE '[0-9]+' token)" = 2 ] || wrong "tokens: $(cat token)"
	is_held_so "1 1"
	calls 0 rlock unlock "$LOCK" "$LOCK.b"
}

session_owner() {
	calls 0 rlock "${VERB/#run/lock}" -l "$LONG_S" --owner "$NAME" "$LOCK"
	[ "$STATUS" = 0 ] || return 0
	is_held_so 1
	asks 0 rlock renew --owner "$NAME" -l "$LONG_S" "$LOCK" >left
	is_held_so 1
	# A release that was carried out though its reply was lost leaves nothing for the second call.
	asks "0 1" rlock unlock --owner "$NAME" "$LOCK"
}

# A holder that keeps the lock from the process that is disturbed, and is not disturbed itself.
blocks() {
	local kind=$KIND
	case $KIND in
	read) kind='write' ;;
	write) kind='read' ;;
	esac
	RLOCK_URL=$DIRECT_URL in_background timeout 30 rlock "$(verb_of "$kind")" "$@" "$LOCK" -- \
		overlap ledger "$(mode_of "$kind")" -u "$CELL/go"
	BLOCKER=$PID
	wait_until 20 entered 1
}

# One that comes later waits as well, and has its turn after it.
session_waits() {
	local waiter later
	blocks
	LABEL=disturbed waiter_calls &
	waiter=$!
	wait_until 10 listen 1 "$LOCK"
	RLOCK_URL=$DIRECT_URL LABEL=later in_background timeout 30 rlock "$VERB" -t "$LEASE_S" "$LOCK" -- \
		sh -c "$COMMAND" sh ledger "$MODE"
	later=$PID
	wait_until 10 listen 2 "$LOCK"
	touch go
	wait "$waiter" || :
	ends 0 "$later" 'the later waiter'
	ends 0 "$BLOCKER" 'the holder'
	STATUS=$(cat status)
	# Two readers are inside together.
	ran 2 '1( 1)?'
	[ "$KIND" != fair ] || [ "$STATUS" != 0 ] || [ "$(head -n 1 ran)" = disturbed ] || wrong 'the waiter lost its position'
}

waiter_calls() {
	OWN_MS=1000
	calls 0 rlock "$VERB" -t "$LEASE_S" "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	echo "$STATUS" >status
}

# A call that does not wait, for a lock that is held.
session_busy() {
	blocks
	SILENT=75
	calls 75 rlock "$VERB" -n "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	is_held_so 1
	ends_blocking
}

session_gives_up() {
	OWN_MS=300
	blocks
	calls "75 69" rlock "$VERB" -w 300ms "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	is_held_so 1
	ends_blocking
	OWN_MS=0
}

ends_blocking() {
	touch go
	ends 0 "$BLOCKER" 'the holder'
	ran 0 ''
}

session_force() {
	blocks -t 1s 2>said-blocker
	# An answer that was lost leaves nothing for the second call.
	calls_force "$(once)"
	[ "$STATUS" != 69 ] || calls_force "0 1"
	ends 76 "$BLOCKER" 'the holder whose lock was broken'
	must "$WHAT: the holder whose lock was broken is inside" overlap -g ledger 0
}

# It names the owner.
calls_force() {
	calls "$1" sh -c 'rlock unlock --force "$1" 2>said || { status=$?; cat said >&2; exit $status; }' sh "$LOCK"
}
