#!/usr/bin/env bats
# Waiters that are killed, at each step of their waiting and at any moment, and waiters whose network is gone.
#
# Promised: a waiter that dies leaves the queue within seconds, and the next waiter acquires the lock. If the dead waiter had just
# acquired the lock, the lock expires with its lease, which is a second here. The next waiter in a queue removes what a dead
# waiter has left there.

load chaos
load ../lib/proxying

LIMIT_MS=8000
STEPS=6
VICTIMS=6
# The longest pause between two kills of kill_at_random.
PAUSE_MS=30

# begin_hold ROUND KIND: starts a holder for which a victim of this kind will wait. ROUND determines the kind of the holder, and
# NEXT_KIND, the kind of the waiter after the victim.
begin_hold() {
	local pairs holder_kind
	case $2 in
	read) pairs=('write write' 'write read') ;;
	write) pairs=('read read' 'write read' 'write write' 'read write') ;;
	*) pairs=("$2 $2") ;;
	esac
	read -r holder_kind NEXT_KIND <<<"${pairs[$1 % ${#pairs[@]}]}"
	WHERE="$holder_kind, then $2, then $NEXT_KIND, $WHERE"
	STRAIGHT=$RLOCK_URL NEXT='' SINCE_US=''
	start_contender holder "$holder_kind" "$LEDGER" until
	HOLDER=$PID
	wait_until 20 entered 1
}

# begin_next: starts the waiter after the victim, without the proxy. Sets NEXT. This waiter has a ledger of its own, since a
# victim may have used that of the victims before.
begin_next() {
	RLOCK_URL=$STRAIGHT start_contender next "$NEXT_KIND" ledger-next '-f 0' -t 5s
	NEXT=$PID
}

next_waits_or_is_in() {
	[ -s ledger-next ] || listen "$1"
}

next_waits() {
	local before
	[ -z "$NEXT" ] || return 0
	before=$(waiting)
	begin_next
	wait_until 20 next_waits_or_is_in $((before + 1))
}

release_lock() {
	SINCE_US=$(now_us)
	finish_contender holder
}

# check_next KIND [SLACK_MS]: the waiter after the victim must acquire the lock within LIMIT_MS + SLACK_MS after the release.
check_next() {
	local took_ms
	must_end 0 "$HOLDER" holder
	must_end 0 "$NEXT" next
	took_ms=$((($(times enter ledger-next) - SINCE_US) / 1000))
	# took_ms is negative if a reader acquired the lock before another reader released it.
	took $((took_ms > 0 ? took_ms : 0))
	((took_ms <= LIMIT_MS + ${2:-0})) || violated "the next one waited for $took_ms ms"
	# Start one more contender, which removes what dead waiters have left.
	RLOCK_URL=$STRAIGHT start_contender last "$1" ledger-next '-f 0' -w ${LIMIT_MS}ms
	must_end 0 "$PID" last
	repeated
}

has_held_reply() {
	proxy state | grep -q 'held=[1-9]'
}

holds_reply_or_is_in() {
	has_held_reply || [ -s ledger-victim ]
}

# kill_at_step NUMBER KIND: kills a waiter while the reply to one of its requests is on its way. NUMBER decides which one.
kill_at_step() {
	local victim step=$((1 + ($1 - 1) % STEPS))
	begin_hold $((($1 - 1) / STEPS)) "$2" && start_proxy || return
	WHERE="step $step, $WHERE"
	((step == 1)) || proxy spare '*' $((step - 1)) || return
	proxy hold-reply '*' || return
	start_contender victim "$2" ledger-victim '-f 0' -t 1s
	victim=$PID
	# If the victim has sent fewer requests within a second, it waits for a notification: release the lock, so that it sends
	# more.
	if ! wait_until 1 has_held_reply; then
		next_waits || return
		release_lock
		wait_until 20 holds_reply_or_is_in || return
	fi
	next_waits || return
	# Do not kill a victim that has acquired the lock with fewer requests.
	if [ ! -s ledger-victim ]; then
		kill -KILL "$victim"
		injected
	fi
	[ -n "$SINCE_US" ] || release_lock
	check_next "$2"
}

# kill_at_random NUMBER KIND: starts VICTIMS waiters, and kills them one after the other, at random moments. The lock is released
# before one of the kills.
kill_at_random() {
	local number release next victims=()
	begin_hold "$1" "$2" || return
	draw 1 $VICTIMS
	next=$DRAWN
	for ((number = 1; number <= VICTIMS; number++)); do
		start_contender "$number" "$2" ledger-victims '-f 1000' -t 1s
		victims+=("$PID")
		((number != next)) || begin_next
		let_some_pass 10
	done
	shuffle "${victims[@]}"
	draw $((VICTIMS / 2)) $VICTIMS
	release=$DRAWN
	for ((number = 1; number <= VICTIMS; number++)); do
		((number != release)) || release_lock
		let_some_pass $PAUSE_MS
		! is_running "${SHUFFLED[number - 1]}" || ! kill -KILL "${SHUFFLED[number - 1]}" || injected
	done
	check_next "$2" $((VICTIMS * PAUSE_MS))
}

# cut_off NUMBER KIND: nothing reaches a waiter any more. The server does not notice: the waiter's connections stay open.
cut_off() {
	local victim
	begin_hold "$1" "$2" && start_proxy || return
	start_contender victim "$2" ledger-victim '-f 0' -t 1s
	victim=$PID
	wait_until 20 listen 1 && next_waits || return
	let_some_pass 2000
	proxy blackhole on || return
	injected
	let_some_pass 2000
	release_lock
	check_next "$2"
	must 'the waiter that was cut off acquired the lock' [ ! -e ledger-victim ]
	kill -KILL "$victim"
	proxy cut
}

@test "waiter killed or cut off: the next waiter acquires the lock within seconds of the release" {
	scenario_of_kinds 'waiter killed at each step' 'until the next is in' $((STEPS * 3)) 8 kill_at_step
	scenario_of_kinds 'waiter killed at random' 'until the next is in' 16 6 kill_at_random
	scenario_of_kinds 'waiter cut off' 'until the next is in' 8 8 cut_off
}
