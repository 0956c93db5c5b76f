#!/usr/bin/env bats
# Waiters that are killed, at each step of their waiting and at any moment, and waiters whose network is gone.
#
# Promised is: a waiter that dies is out of the queue within seconds, and the one after it gets in; had it
# acquired the lock just then, that ends with its lease, which is a second here. What it leaves of a queue goes when
# another one next waits in it.

load chaos
load ../lib/proxying

setup() {
	directory_setup
	STRAIGHT=$RLOCK_URL
}

LIMIT_MS=8000
# Between two kills at random.
PAUSE_MS=30

# choose ROUND KIND: sets HOLDER_KIND and NEXT_KIND, what holds the lock, and what comes after the one that is
# killed: now a kind that it would keep out, now one that it wouldn't.
choose() {
	local pairs
	case $2 in
	read) pairs=('write write' 'write read') ;;
	write) pairs=('read read' 'write read' 'write write' 'read write') ;;
	*) pairs=("$2 $2") ;;
	esac
	read -r HOLDER_KIND NEXT_KIND <<<"${pairs[$1 % ${#pairs[@]}]}"
}

begin_hold() {
	visits holder "$HOLDER_KIND" "$LEDGER" until
	HOLDER=$PID
	wait_until 20 entered 1
}

# The next one speaks to the server itself. Sets NEXT.
begin_next() {
	RLOCK_URL=$STRAIGHT visits next "$NEXT_KIND" "$LEDGER.next" '-f 0' -t 1s
	NEXT=$PID
}

# next_waits: the same, and returns when it waits; or is in, if nothing keeps it out any more.
next_waits() {
	local before
	before=$(listeners)
	begin_next
	wait_until 20 next_waits_or_is_in "$before"
}

next_waits_or_is_in() {
	[ -s "$LEDGER.next" ] || listen $(($1 + 1))
}

# check_next SINCE_US WHERE KIND [SLACK_MS]: it gets in; how long did that take?
check_next() {
	local took_ms
	if ! wait_until $((LIMIT_MS / 1000 + 10)) is_gone "$NEXT"; then
		violated "the next one does not get in, $2"
		return
	fi
	must_end 0 next "$NEXT" "$2"
	took_ms=$((($(awk '$2 == "enter" { print $1 }' "$LEDGER.next") - $1) / 1000))
	# A reader need not wait for the end of another.
	((took_ms >= 0)) || took_ms=0
	took "$took_ms"
	# One more, which finds what dead ones have left.
	RLOCK_URL=$STRAIGHT visits last "$3" "$LEDGER.next" '-f 0' -w ${LIMIT_MS}ms
	must_end 0 last "$PID" "$2"
	((took_ms <= LIMIT_MS + ${4:-0})) || violated "the next one waited for $took_ms ms, $2"
}

# ---- at each step ----

STEPS=6

has_held_reply() {
	proxy state | grep -q 'held=[1-9]'
}

# The victim waits for the answer to its next request; not so within a moment: it waits for a message.
holds_reply() {
	wait_until 1 has_held_reply 2>/dev/null
}

# next_step NUMBER: its next request will be the one with that number.
next_step() {
	proxy hold-reply '*' >/dev/null
	(($1 == 1)) || proxy release >/dev/null
}

# release_lock: the next one waits by then.
release_lock() {
	[ -n "$NEXT" ] || next_waits || return
	leaves holder
}

# go_to_step NUMBER: until the answer to the request with that number is held. Releases the lock where the
# victim does not go on else. 1: it got in before.
go_to_step() {
	local step has_lock=yes
	for ((step = 1; step <= $1; step++)); do
		next_step "$step" || return
		if [ "$has_lock" ] && ! holds_reply; then
			release_lock || return
			has_lock=
		fi
		[ "$has_lock" ] || wait_until 20 holds_reply_or_is_in || return
		! is_in || return
	done
}

is_in() {
	[ -s "$LEDGER.victim" ]
}

holds_reply_or_is_in() {
	has_held_reply || is_in
}

# kill_at_step NUMBER KIND
kill_at_step() {
	local step=$((1 + ($1 - 1) % STEPS)) where victim since_us
	begin_chance
	choose $((($1 - 1) / STEPS)) "$2"
	where="$HOLDER_KIND, then $2, killed at step $step, then $NEXT_KIND"
	NEXT=
	begin_hold || return
	start_proxy || return
	proxy hold-reply '*' >/dev/null
	visits victim "$2" "$LEDGER.victim" '-f 0' -t 1s
	victim=$PID
	if ! go_to_step "$step"; then
		is_in
		return
	fi
	[ -n "$NEXT" ] || next_waits || return
	kill -KILL "$victim"
	wait "$victim" || :
	injected
	repeated
	since_us=$(now_us)
	leaves holder
	must_end 0 holder "$HOLDER" "$where"
	check_next "$since_us" "$where" "$2"
	must_leave_nothing 15
}

@test "waiter killed at each step" {
	local kind
	begin_scenario 'waiter killed at each step'
	for kind in "${KINDS[@]}"; do
		in_cells $((STEPS * $(scaled 3))) 8 kill_at_step "$kind"
	done
	end_scenario 'until the next is in'
}

# ---- at any moment ----

VICTIMS=6

# has_not_ended PID: the words of a program are there for as long as it runs. Without a process: it would be late.
has_not_ended() {
	local word=
	{ read -r -d '' word <"/proc/$1/cmdline"; } 2>/dev/null || :
	[ -n "$word" ]
}

# kill_at_random NUMBER KIND: some that begin to wait, and are killed from then on, one after the other; in
# between the lock is released.
kill_at_random() {
	local number release next since_us victims=() where
	begin_chance
	choose "$1" "$2"
	where="$HOLDER_KIND, then $2, then $NEXT_KIND, chance $CHANCE"
	begin_hold || return
	draw 1 $VICTIMS
	next=$DRAWN
	for ((number = 1; number <= VICTIMS; number++)); do
		visits "$number" "$2" "$LEDGER.victims" '-f 1000' -t 1s
		victims+=("$PID")
		((number != next)) || begin_next
		draw 0 10
		let_pass_ms "$DRAWN"
	done
	shuffle "${victims[@]}"
	draw $((VICTIMS / 2)) $VICTIMS
	release=$DRAWN
	for ((number = 1; number <= VICTIMS; number++)); do
		if ((number == release)); then
			since_us=$(now_us)
			leaves holder
		fi
		draw 0 $PAUSE_MS
		let_pass_ms "$DRAWN"
		if has_not_ended "${SHUFFLED[number - 1]}"; then
			kill -KILL "${SHUFFLED[number - 1]}"
			injected
			repeated
		fi
	done
	wait "${victims[@]}" || :
	must_end 0 holder "$HOLDER" "$where"
	check_next "$since_us" "$where" "$2" $((VICTIMS * PAUSE_MS))
	must_leave_nothing 15
}

@test "waiter killed at random" {
	local kind
	begin_scenario 'waiter killed at random'
	for kind in "${KINDS[@]}"; do
		in_cells "$(scaled 16)" 6 kill_at_random "$kind"
	done
	end_scenario 'until the next is in'
}

# ---- cut off ----

# cut_off NUMBER KIND: the server is not told that the waiter is gone: its connections stay open.
cut_off() {
	local victim since_us where
	begin_chance
	choose "$1" "$2"
	where="$HOLDER_KIND, then $2, cut off, then $NEXT_KIND, chance $CHANCE"
	begin_hold || return
	start_proxy || return
	visits victim "$2" "$LEDGER.victim" '-f 0' -t 1s
	victim=$PID
	wait_until 20 listen 1 || return
	next_waits || return
	draw 0 2000
	let_pass_ms "$DRAWN"
	proxy blackhole on >/dev/null || return
	injected
	repeated
	draw 0 2000
	let_pass_ms "$DRAWN"
	since_us=$(now_us)
	leaves holder
	must_end 0 holder "$HOLDER" "$where"
	check_next "$since_us" "$where" "$2"
	must "the waiter that was cut off acquired the lock: $where" [ ! -s "$LEDGER.victim" ]
	kill -KILL "$victim"
	wait "$victim" || :
	proxy cut >/dev/null
	must_leave_nothing 15
}

@test "waiter cut off" {
	local kind
	begin_scenario 'waiter cut off'
	for kind in "${KINDS[@]}"; do
		in_cells "$(scaled 8)" 8 cut_off "$kind"
	done
	end_scenario 'until the next is in'
}
