#!/usr/bin/env bats
# A network that loses and spoils what passes, at each request of each thing that one does with a lock.
#
# Promised: a lost reply never counts a hold twice and leaves none behind for longer than a lease. When a connection
# breaks after a request, the server is asked what became of that: by a call that acquires a lock, waiting or not, for a
# second at least, and by one that releases for 5 s. So of one fault that lasts no longer than a few hundred milliseconds
# nothing is seen but with `renew`, and with `unlock` of an --owner's lock or by --force, which ask once: 69 then, in
# one line, and the same call again is well. Two faults in a row may be 69 anywhere. The command runs once at most,
# others keep their locks and their places.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016,SC2089,SC2090

load chaos
load ../lib/proxying

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	common_setup
	DIRECT_URL=$RLOCK_URL
	cd "$BATS_TEST_TMPDIR" || return
}

LEASE_S=3
# Of what nothing renews, and what is released.
LONG_S=60
# Of a waiter's sign of life that it could not take back.
SIGN_S=5
STALL_MS=300
# What it has to do by itself aside: as long as an answer may take (--connect-timeout).
CALL_LIMIT_MS=5000
FAULTS=(drop-reply cut-before stall-reply end-reply garbage)
SESSIONS=(run nested names fence at_least renewed process_lock process_lock_fence owner waits busy gives_up force)

WIDTH=6

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
	[ "$STATUS" != 69 ] || [ "$SECOND" = none ] || proxy pass >/dev/null
	[ "$STATUS" != 69 ] || calls "$after" "$@"
}

# ran TIMES COUNTS: the command did, and found these hold counts, a regular expression.
ran() {
	local times
	times=$(wc -l <"$CELL/ran")
	if [ "$SECOND" != none ] && [ "$STATUS" = 69 ]; then
		((times <= $1)) || wrong "the command ran $times times"
		return 0
	fi
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

# Where a call may fail when it meets two faults.
well() {
	[ "$SECOND" = none ] && echo 0 || echo 0 69
}

session_run() {
	calls "$(well)" rlock "$VERB" -t "$LEASE_S" "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 1
}

session_nested() {
	calls "$(well)" rlock "$VERB" -t "$LEASE_S" "$LOCK" -- \
		rlock "$VERB" -t "$LEASE_S" "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 2
}

session_names() {
	calls "$(well)" rlock "$VERB" -t "$LEASE_S" "$LOCK" "$LOCK.b" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 "1 1"
}

session_fence() {
	case $KIND in
	read | write) return ;;
	esac
	calls "$(well)" rlock "$VERB" -t "$LEASE_S" --fence "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 1
	[ ! -s tokens ] || grep -qxE '[0-9]+' tokens || wrong "tokens: $(cat tokens)"
}

session_at_least() {
	calls "$(well)" rlock "$VERB" -t "$LEASE_S" --at-least 1s "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	ran 1 1
}

# Of a lease that is renewed once meanwhile, and that leaves time for another try.
session_renewed() {
	OWN_MS=700
	calls "$(well)" rlock "$VERB" -t 1500ms "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE" -f 700000
	ran 1 1
}

# releases_by COMMAND [ARG...]: which can be done again after 69.
releases_by() {
	calls "$(well)" "$@"
	[ "$STATUS" != 69 ] || proxy pass >/dev/null
	[ "$STATUS" != 69 ] || calls 0 "$@"
}

session_process_lock() {
	calls "$(well)" rlock "${VERB/#run/lock}" -t "$LEASE_S" --pid "$BASHPID" "$LOCK"
	[ "$STATUS" = 0 ] || return 0
	is_held_so 1
	asks 0 rlock renew "$LOCK" >left
	is_held_so 1
	releases_by rlock unlock "$LOCK"
}

session_process_lock_fence() {
	local fence=()
	case $KIND in
	plain | fair) fence=(--fence) ;;
	esac
	calls "$(well)" rlock "${VERB/#run/lock}" -t "$LEASE_S" "${fence[@]}" --pid "$BASHPID" "$LOCK" "$LOCK.b" >token
	[ "$STATUS" = 0 ] || return 0
	[ ${#fence[@]} -eq 0 ] || [ "$(grep -cxE '[0-9]+' token)" = 2 ] || wrong "tokens: $(cat token)"
	is_held_so "1 1"
	releases_by rlock unlock "$LOCK" "$LOCK.b"
}

session_owner() {
	calls "$(well)" rlock "${VERB/#run/lock}" -l "$LONG_S" --owner "$NAME" "$LOCK"
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
	wait_until 5 entered 1
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
	ends 0 "$later" 'who came later'
	ends 0 "$BLOCKER" 'who was before'
	STATUS=$(cat status)
	# Two readers are inside together.
	ran 2 '1( 1)?'
	[ "$KIND" != fair ] || [ "$STATUS" != 0 ] || [ "$(head -n 1 ran)" = disturbed ] || wrong 'lost its place'
}

waiter_calls() {
	OWN_MS=1000
	calls "$(well)" rlock "$VERB" -t "$LEASE_S" "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
	echo "$STATUS" >status
}

# A call that does not wait, for a lock that is held.
session_busy() {
	local allowed=75
	[ "$SECOND" = none ] || allowed+=' 69'
	blocks
	SILENT=75
	calls "$allowed" rlock "$VERB" -n "$LOCK" -- sh -c "$COMMAND" sh ledger "$MODE"
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
	ends 0 "$BLOCKER" 'who has the lock'
	ran 0 ''
}

session_force() {
	blocks -t 1s 2>said-blocker
	# An answer that was lost leaves nothing for the second call.
	calls_force "$(once)"
	[ "$STATUS" != 69 ] || proxy pass >/dev/null
	[ "$STATUS" != 69 ] || calls_force "0 1"
	ends 76 "$BLOCKER" 'whose lock was broken'
	must "$WHAT: whose lock was broken is inside" overlap -g ledger 0
}

# It says whose lock it was.
calls_force() {
	calls "$1" sh -c 'rlock unlock --force "$1" 2>said || { status=$?; cat said >&2; exit $status; }' sh "$LOCK"
}

# ---- cells ----

# disturbed NUMBER KIND: what stands in that line of the file $PLAN: a session, which request, a fault, a second
# fault for the request behind that or "none", and how long a reply stalls.
disturbed() {
	local session nth stall_ms
	read -r session nth FAULT SECOND stall_ms < <(sed -n "$1p" "$PLAN")
	WHAT="$2: $session, request $nth: $FAULT, $SECOND"
	[ "$SECOND" = none ] || WHAT+=", $stall_ms ms, SEED=$SEED"
	begin_session "$2"
	order_faults "$nth" "$stall_ms"
	"session_$session"
	injected $((ORDERED - $(rules_left)))
	leaves_nothing
	repeated
}

# order_faults NTH STALL_MS
order_faults() {
	ORDERED=1
	((RANDOM % 4)) || [ "$SECOND" = none ] || redis script flush
	[ "$1" = 1 ] || proxy spare '*' $(($1 - 1))
	if [ "$FAULT" = trickle ]; then
		proxy trickle on
	else
		proxy "$FAULT" '*'
	fi
	if [ "$SECOND" != none ]; then
		proxy stall "$2"
		proxy "$SECOND" '*'
		ORDERED=2
	fi
}

# Of the faults that were ordered; what is spared goes first.
rules_left() {
	local state rules
	state=$(proxy state)
	rules=${state##*rules=}
	echo $((rules < ORDERED ? rules : ORDERED))
}

# learn NUMBER KIND: how many requests a session has when nothing disturbs it.
learn() {
	local session=${SESSIONS[$1 - 1]} requests
	WHAT="$2: $session, undisturbed" FAULT=none SECOND=none
	begin_session "$2"
	"session_$session"
	requests=$(proxy count)
	requests=${requests##*requests=}
	requests=${requests%% *}
	echo "$session $requests" >>"$REQUESTS"
	leaves_nothing
}

begin_session() {
	KIND=$1 VERB=$(verb_of "$1") MODE=$(mode_of "$1") OWN_MS=0 SILENT=0
	# No other cell's has it in front.
	LOCK=$NAME.
	export CELL LOCK COUNT_HOLDS LABEL=it
	touch ran counts tokens
	start_proxy
}

# A waiter whose last requests for the queue were lost is out of it when the next one waits there, and not before.
leaves_nothing() {
	if [ "$KIND" = fair ] && ! no_keys_of_cell >/dev/null; then
		RLOCK_URL=$DIRECT_URL timeout 30 rlock fair -w $((SIGN_S + 5)) "$LOCK" -- true ||
			wrong "the next one in the line ended with $?"
	fi
	must "$WHAT: keys are left" wait_until $((SIGN_S + 1)) no_keys_of_cell
	must "$WHAT: something runs" wait_until 3 nothing_runs
	! compgen -G "$RLOCK_RUNTIME_DIR/hold-*" >left || wrong "files are left: $(cat left)"
	[ ! -e ledger ] || count_overlaps ledger
}

# plan_each REQUESTS: each fault at each request of each session, in any order. Replies that trickle do so all the
# time.
plan_each() {
	local session requests nth fault
	while read -r session requests; do
		((requests == 0)) || echo "$session 1 trickle none $STALL_MS"
		for ((nth = 1; nth <= requests; nth++)); do
			for fault in "${FAULTS[@]}"; do
				echo "$session $nth $fault none $STALL_MS"
			done
		done
	done <"$1" | shuf --random-source=<(yes "$SEED")
}

# plan_two REQUESTS COUNT: so many times two faults in a row.
plan_two() {
	local number session requests sessions
	mapfile -t sessions < <(grep -v ' 0$' "$1")
	RANDOM=$SEED
	for ((number = 0; number < $2; number++)); do
		read -r session requests <<<"${sessions[RANDOM % ${#sessions[@]}]}"
		echo "$session $((RANDOM % requests + 1)) ${FAULTS[RANDOM % ${#FAULTS[@]}]}" \
			"${FAULTS[RANDOM % ${#FAULTS[@]}]} $((RANDOM % 600))"
	done
}

# ---- others on the server ----

# For as long as it takes.
UNTIL_LET_GO='until [ -e "$0/let-go" ] || [ ! -d "$0" ]; do read -r -t 0.2 <> <(:) || :; done'

# bystanders KIND: a holder and, after it, some that wait for the lock.
bystanders() {
	local verb other
	verb=$(verb_of "$1")
	other=$verb
	[ "$1" != read ] || other=wlock
	[ "$1" != write ] || other=rlock
	in_background timeout 900 rlock "$verb" bystander -- bash -c "$UNTIL_LET_GO" "$PWD"
	wait_until 5 is_held bystander
	in_background timeout 900 rlock "$other" bystander -- true
	wait_until 5 listen 1 bystander
	in_background timeout 900 rlock "$other" bystander -- true
	wait_until 5 listen 2 bystander
	owners=$(redis hkeys bystander)
	line=$(redis lrange 'redisson_lock_queue:{bystander}' 0 -1)
}

bystanders_are_unharmed() {
	local pid
	[ "$(redis hkeys bystander)" = "$owners" ] || violated 'the lock of others is not theirs any more'
	[ "$(redis lrange 'redisson_lock_queue:{bystander}' 0 -1)" = "$line" ] || violated 'the line of others changed'
	let_go
	WHAT='others in the line'
	for pid in "${BACKGROUND[@]}"; do
		ends 0 "$pid" 'one of them'
	done
}

# Of a shell that has nothing to wait for but them: the bystanders stay.
cells() {
	(in_cells "$1" "$WIDTH" "${@:2}")
}

# disturb KIND PLANNER [COUNT]
disturb() {
	local owners line all count
	SEED=${SEED:-$RANDOM}
	bystanders "$1"
	# The first time is for the server to get to know the scripts.
	for REQUESTS in "$PWD/cold" "$PWD/requests"; do
		cells ${#SESSIONS[@]} learn "$1"
	done
	PLAN=$PWD/plan
	"$2" "$REQUESTS" "${@:3}" >plan
	all=$(wc -l <plan)
	count=$all
	[ $# -gt 2 ] || count=$(scaled "$all")
	# More than all: again from the beginning.
	cp plan once
	while (($(wc -l <plan) < count)); do
		cat once >>plan
	done
	cells "$count" disturbed "$1"
	bystanders_are_unharmed
	must 'keys are left' wait_until 3 no_keys_but_counters
	end_scenario 'for a call'
}

no_keys_but_counters() {
	! redis --raw keys '*' | grep -v '^redisson_lock_token:' | grep -q .
}

each_request() {
	begin_scenario "network, a fault at each request, $1"
	disturb "$1" plan_each
}

two_in_a_row() {
	begin_scenario "network, two faults in a row, $1"
	disturb "$1" plan_two "$(scaled 50)"
}

@test "network, a fault at each request, plain" { each_request plain; }
@test "network, a fault at each request, fair" { each_request fair; }
@test "network, a fault at each request, read" { each_request read; }
@test "network, a fault at each request, write" { each_request write; }
@test "network, two faults in a row, plain" { two_in_a_row plain; }
@test "network, two faults in a row, fair" { two_in_a_row fair; }
@test "network, two faults in a row, read" { two_in_a_row read; }
@test "network, two faults in a row, write" { two_in_a_row write; }
