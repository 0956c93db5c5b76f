#!/usr/bin/env bats
# A network that loses and spoils what passes, at each request of each thing that one does with a lock.
#
# Promised: a lost reply never counts a hold twice, and no leftover hold stays for longer than a lease. When a connection
# breaks after a request, the server is asked what became of that: by a call that acquires a lock, waiting or not, for a
# second at least, and by one that releases for 5 s. So of one fault that lasts no longer than a few hundred milliseconds
# nothing is seen but with `renew`, and with `unlock` of an --owner's lock or by --force, which ask once: 69 then, in
# one line, and the same call again is well. The command runs once at most, others keep their locks and their places.
#
# What one does with a lock, and what is to come of it, is in sessions.bash.

# What is set here is for sessions.bash, too.
# shellcheck disable=SC2034

load chaos
load ../lib/proxying
load sessions

setup() {
	directory_setup
	DIRECT_URL=$RLOCK_URL
}

# Of a waiter's sign of life that it could not take back.
SIGN_S=5
FAULTS=(drop-reply cut-before stall-reply end-reply garbage)

WIDTH=6

# ---- cells ----

# disturbed NUMBER KIND: what is in that line of the file $PLAN: a session, which request, and a fault.
disturbed() {
	local session nth
	read -r session nth FAULT < <(sed -n "$1p" "$PLAN")
	WHAT="$2: $session, request $nth: $FAULT"
	begin_session "$2"
	[ "$nth" = 1 ] || proxy spare '*' $((nth - 1))
	if [ "$FAULT" = trickle ]; then
		proxy trickle on
	else
		proxy "$FAULT" '*'
	fi
	"session_$session"
	[[ $(proxy state) != *rules=0* ]] || injected
	leaves_nothing
	repeated
}

# learn NUMBER KIND: how many requests a session has when nothing disturbs it.
learn() {
	local session=${SESSIONS[$1 - 1]} requests
	WHAT="$2: $session, undisturbed" FAULT=none
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
			wrong "the next one in the queue ended with $?"
	fi
	must "$WHAT: keys are left" wait_until $((SIGN_S + 10)) no_keys_of_cell
	must "$WHAT: something runs" wait_until 10 nothing_runs
	! compgen -G "$RLOCK_RUNTIME_DIR/hold-*" >left || wrong "files are left: $(cat left)"
	[ ! -e ledger ] || count_overlaps ledger
}

# plan_each REQUESTS: each fault at each request of each session, in any order. Replies that trickle do so all the
# time.
plan_each() {
	local session requests nth fault
	while read -r session requests; do
		((requests == 0)) || echo "$session 1 trickle"
		for ((nth = 1; nth <= requests; nth++)); do
			for fault in "${FAULTS[@]}"; do
				echo "$session $nth $fault"
			done
		done
	done <"$1" | shuf --random-source=<(yes "$SEED")
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
	wait_until 20 is_held bystander
	in_background timeout 900 rlock "$other" bystander -- true
	wait_until 20 listen 1 bystander
	in_background timeout 900 rlock "$other" bystander -- true
	wait_until 20 listen 2 bystander
	owners=$(redis hkeys bystander)
	waiters=$(redis lrange 'redisson_lock_queue:{bystander}' 0 -1)
}

bystanders_are_unharmed() {
	local pid
	[ "$(redis hkeys bystander)" = "$owners" ] || violated 'the lock of others is not theirs any more'
	[ "$(redis lrange 'redisson_lock_queue:{bystander}' 0 -1)" = "$waiters" ] || violated 'the queue of others changed'
	let_go
	WHAT='others in the queue'
	for pid in "${BACKGROUND[@]}"; do
		ends 0 "$pid" 'one of them'
	done
}

# Of a shell that has nothing to wait for but them: the bystanders stay.
cells() {
	(in_cells "$1" "$WIDTH" "${@:2}")
}

# disturb KIND
disturb() {
	local owners waiters count
	SEED=${SEED:-$RANDOM}
	rm -f let-go cold requests
	BACKGROUND=()
	bystanders "$1"
	# The first time is for the server to get to know the scripts.
	for REQUESTS in "$PWD/cold" "$PWD/requests"; do
		cells ${#SESSIONS[@]} learn "$1"
	done
	PLAN=$PWD/plan
	plan_each "$REQUESTS" >plan
	count=$(scaled "$(wc -l <plan)")
	# More than all: again from the beginning.
	cp plan once
	while (($(wc -l <plan) < count)); do
		cat once >>plan
	done
	cells "$count" disturbed "$1"
	bystanders_are_unharmed
	must 'keys are left' wait_until 10 no_keys_but_counters
}

no_keys_but_counters() {
	! redis --raw keys '*' | grep -v '^redisson_lock_token:' | grep -q .
}

@test "network, a fault at each request" {
	local kind
	for kind in "${KINDS[@]}"; do
		begin_scenario "network, $kind"
		disturb "$kind"
		end_scenario 'for a call'
	done
}
