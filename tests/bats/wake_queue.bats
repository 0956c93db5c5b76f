#!/usr/bin/env bats
# bats file_tags=long
# Many waiters for locks of any kind but fair: each release wakes one; if that one dies, stops or gives up, the next one is woken. A reader
# or writer that has waited long is not overtaken, and delays the others only for a moment.

load ../lib/usual
load ../lib/contenders
load ../lib/proxying

# ---- how much a release costs ----

# Allow more than 20 wake-ups: some waiters may try at the moment of a release and acquire the lock first, more often on a busy
# machine. If each release woke all waiters, there would be 210.
@test "each release wakes one of twenty waiters, also a release by Redisson" {
	local woken
	hold_by_foreign_client a
	for _ in {1..20}; do
		in_background rlock run -v a -- true 2>>log
	done
	wait_until 10 has_waiters a 20
	release_by_foreign_client a
	all_ended_with 0
	woken=$(grep -c ': woken$' log)
	((woken >= 10 && woken <= 100)) || fail "woken $woken times"
	no_keys
}

# ---- waiters that die, end or are stopped ----

@test "a waiter killed after it was woken delays the next one by seconds, one ended by a signal not at all" {
	start_holder h run a
	queue_contender first run a
	queue_contender second run a
	stop_waiters "${PIDS[first]}"
	finish_contenders h
	kill_with_renewers "${PIDS[first]}"
	# If the waiter were not woken, it would acquire the lock only when the lease of 30 s ends.
	wait_until_entered second 7
	# The first waiter may need a moment to end; queue_contender counts subscribers.
	wait_until 5 has_subscribers 0
	queue_contender third run a
	queue_contender fourth run a
	stop_waiters "${PIDS[third]}"
	finish_contenders second
	continue_with_signal TERM "${PIDS[third]}"
	enters_when_woken fourth
	ended_with 143 "${PIDS[third]}"
	finish_contenders fourth
	no_keys
}

@test "readers acquire the lock immediately when a waiting writer ends, and within five seconds when it is killed" {
	start_holder r1 read a
	queue_contender w1 write a
	queue_contender r2 read a
	kill "${PIDS[w1]}"
	enters_when_woken r2
	ended_with 143 "${PIDS[w1]}"
	queue_contender w2 write a
	queue_contender r3 read a
	kill_with_renewers "${PIDS[w2]}"
	start_contender r4 read a
	wait_until 15 have_entered r3 r4
	is_free 'rlock_writer:{a}'
	finish_contenders r1 r2 r3 r4
	wait_until 5 no_keys
}

# ---- waiters that are not overtaken ----

@test "a reader that comes after a waiting writer waits, and the message names that writer" {
	start_holder r1 read a
	queue_contender w write --note 'nightly import' a
	run -75 rlock read -n a -- touch ran
	assert_output ''
	run_timed_out 75 rlock read -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by readers, and next is nightly import \($UUID:${PIDS[w]}\); give a longer --wait\$"
	queue_contender r2 read a
	stays_true_for 0.3 are_waiting r2 w
	finish_contenders r1
	wait_until 5 has_entered w
	stays_true_for 0.3 are_waiting r2
	finish_contenders w
	enters_when_woken r2
	finish_contenders r2
	wait_until 5 no_keys
}

# turn_begins MS: whether the lock is no longer held for writing. Sets TURN_MS to the TTL of the next turn, which is the
# reservation for a waiter. Also sets that TTL to MS, unless MS is 0. The same script does this, since a turn lasts only for a
# second, and another call could come too late.
turn_begins() {
	ask_server eval '
		if redis.call("exists", KEYS[1]) == 1 and redis.call("hget", KEYS[1], "mode") ~= "read" then
			return "held"
		end
		local turn_ms = redis.call("pttl", KEYS[2])
		if tonumber(ARGV[1]) > 0 then
			redis.call("pexpire", KEYS[2], ARGV[1])
		end
		return turn_ms' 2 a 'rlock_turn:{a}' "$1" && TURN_MS=$ANSWER && [ "$TURN_MS" != held ]
}

# is_woken_late VERB HOLDER MS: lets a waiter wait for more than 2 s, wakes it, and stops it before it can act. Its turn lasts for
# MS. Tries again when the machine was so slow that the turn had ended before the test saw it.
is_woken_late() {
	local try
	for try in 1 2 3 4 5; do
		rm -f in-* out-*
		start_holder h "$2" a
		queue_contender waiter "$1" a
		pause_for 2.2
		stop_waiters "${PIDS[waiter]}"
		finish_contenders h
		wait_until 5 turn_begins "$3"
		[ "$TURN_MS" -lt 1 ] || return 0
		continue_waiters "${PIDS[waiter]}"
		enter_in_order waiter
	done
	fail "the waiter got no turn in $try tries"
}

@test "a waiter that has waited for 2 s is not overtaken, for a plain lock, nor a reader by a writer" {
	local verb other
	while read -r verb other; do
		is_woken_late "$verb" "$other" 20000
		run -75 rlock "$other" -n a -- true
		queue_contender later "$other" a
		continue_waiters "${PIDS[waiter]}"
		wait_until 5 has_entered waiter || fail "a waiter for $verb is not in"
		are_waiting later
		finish_contenders waiter later
		no_keys
	done <<-'EOT'
		run run
		read write
	EOT
}

@test "a woken waiter that does not acquire the lock delays the others by 2 s at most" {
	is_woken_late run run 0
	assert_between 1 "$TURN_MS" 1000
	run -0 rlock run -w 10s a -- true
	continue_waiters "${PIDS[waiter]}"
	enter_in_order waiter
	no_keys
}

# comes_from_afar VERB NAME...: other shells acquire the plain locks again and again. A waiter whose round trip is longer than the gaps
# between their holds must acquire its locks within 20 s.
comes_from_afar() {
	local name here=$RLOCK_URL
	for name in "${@:2}"; do
		for _ in 1 2; do
			in_background sh -c 'until [ -e enough ]; do rlock run "$0" -- timeout 0.3 tail -f /dev/null; done' "$name"
		done
		wait_until 5 has_waiters "$name"
	done
	start_realtime_proxy
	proxy far 10
	run -0 rlock "$1" -w 60s "${@:2}" -- true
	RLOCK_URL=$here
	touch enough
}

# Callers of the plain lock do not read the queue of the fair lock, and those of the fair lock do not read that of the plain one.
@test "a fair waiter with a slow network acquires the lock while callers of the plain lock come and go" {
	comes_from_afar fair a
}

@test "a waiter for several names with a slow network acquires them while others come and go for each name" {
	comes_from_afar run a b
}

# reserve_for_both: lets a waiter for two names wait for more than 2 s, and then releases the first of them. Its turn then lasts for 20 s.
# Tries again when the machine was so slow that the turn had ended before the test saw it.
reserve_for_both() {
	local try
	for try in 1 2 3 4 5; do
		rm -f in-* out-*
		start_holder x run a
		start_holder y run b
		start_contender both run a b
		wait_until 5 has_waiters b
		wait_until 5 has_subscribers 1
		queue_contender one run a
		pause_for 2.2
		finish_contenders x
		wait_until 5 turn_begins 20000 || TURN_MS=0
		[ "$TURN_MS" -lt 1 ] || return 0
		finish_contenders y both one
	done
	fail "the waiter got no turn in $try tries"
}

@test "a free name is reserved for a waiter of several names until the other name is released" {
	reserve_for_both
	stays_true_for 0.5 is_free a
	finish_contenders y
	enters_when_woken both
	are_waiting one
	finish_contenders both one
	no_keys
}

# come_and_go HOW VERB COUNT SECONDS: starts COUNT shells, which acquire the lock again and again, for SECONDS each time, until
# the file "enough" exists.
come_and_go() {
	local number
	for ((number = 0; number < $3; number++)); do
		in_background sh -c 'until [ -e enough ]; do
			rlock "$1" a -- sh -c "check_sharing \$0; sleep \$1" "$0" "$2" || exit
		done' "$1" "$2" "$4"
	done
	wait_until 10 file_has_line turns "$1"
}

@test "readers and writers that come and go starve nobody, and a writer is always alone" {
	not_under_valgrind 'its waiters do not join the queue in time'
	# With five readers, at least one always holds the lock, so a writer without precedence would starve.
	come_and_go read read 5 1
	wait_until 20 stays_true_for 1.5 is_held a
	run -0 rlock write -w 60s a -- check_sharing write
	come_and_go write write 3 0.05
	for _ in 1 2 3; do
		run -0 rlock read -w 60s a -- check_sharing read
		# After it has written, the command acquires the lock as a reader, too.
		run -0 rlock write -w 60s a -- sh -c 'check_sharing write; rlock read a -- rlock read a -- true'
		run -0 bash -c 'rlock read --pid $$ a && check_sharing read && rlock unlock a'
	done
	touch enough
	all_ended_with 0
	[ ! -e wrong ] || fail "$(cat wrong)"
	nothing_is_left
}

# ---- waiters of other programs ----

# others_have_turn: whether the release of this rlock has reserved the lock for waiters of other programs, as one in four releases
# does at random.
others_have_turn() {
	rlock run -n a -- true
	redis_says - get 'rlock_turn:{a}'
}

@test "after a release by rlock, waiters of other programs have time to acquire the lock" {
	# Start a subscriber of the lock's channel that makes no attempt. It looks like a waiter of Redisson's.
	in_background redis-cli -s "$SERVER_SOCKET" subscribe 'redisson_lock__channel:{a}'
	wait_until 5 has_subscribers 1
	wait_until 30 others_have_turn
	# A call with -n must acquire the free lock in spite of the reservation.
	run -0 rlock run -n a -- true
	wait_until 30 others_have_turn
	# A call that waits must acquire the lock when the reservation has expired.
	run -0 rlock run -w 20s a -- true
	kill "${BACKGROUND[0]}"
	wait_until 5 no_keys
}
