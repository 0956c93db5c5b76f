#!/usr/bin/env bats
# bats file_tags=long
# Waiters for any lock but a fair one when there are many: each release wakes one of them; the next one is woken when that
# one dies, stops or gives up; and one that has waited for long, reader or writer, is not overtaken, and holds up none for long.

load ../lib/usual
load ../lib/contenders
load ../lib/proxying

# ---- how much a release costs ----

# Others may try by their own clocks just then, and be there first, more often on a busy machine. Were all woken by each
# release, it would be 210 times.
@test "of twenty waiters each release wakes one, the first one a release by Redisson" {
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

# ---- what becomes of a waiter ----

@test "a waiter that is killed, or ended, once it was woken holds up the next one for seconds, or not at all" {
	start_holder h run a
	queue_contender first run a
	queue_contender second run a
	stop_waiters "${PIDS[first]}"
	finish_contenders h
	wait_until 5 is_free a
	kill_with_renewers "${PIDS[first]}"
	# The wait for the end of the lease would be 30 s.
	wait_until_entered second 7
	queue_contender third run a
	queue_contender fourth run a
	stop_waiters "${PIDS[third]}"
	finish_contenders second
	wait_until 5 is_free a
	continue_with_signal TERM "${PIDS[third]}"
	enters_when_woken fourth
	ended_with 143 "${PIDS[third]}"
	finish_contenders fourth
	no_keys
}

@test "a writer that is ended while it waits lets the readers in at once, one that is killed within five seconds" {
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

# ---- those that come later ----

@test "a reader that comes after a waiting writer lets it go first, and is told which writer is next" {
	start_holder r1 read a
	queue_contender w write --note 'nightly import' a
	run -75 rlock read -n a -- touch ran
	assert_output ''
	run -75 rlock read -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by readers, and next is nightly import \($UUID:${PIDS[w]}\): give a longer --wait\$"
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

# turn_begins MS: the lock is no longer held for writing. Sets TURN_MS to the TTL of the turn that a waiter has then, and makes
# it MS by the same request, since a turn lasts for a second, and the next call may begin late. 0: it is left as it is.
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

# is_woken_late VERB HOLDER MS: a waiter that has waited for more than 2 s is woken, and stopped before it acts on that. Its turn
# lasts for MS.
is_woken_late() {
	start_holder h "$2" a
	queue_contender waiter "$1" a
	pause_for 2.2
	stop_waiters "${PIDS[waiter]}"
	finish_contenders h
	wait_until 5 turn_begins "$3"
}

@test "a waiter that has waited for 2 s is not overtaken: for a plain lock, and a reader by no writer" {
	local verb other
	while read -r verb other; do
		rm -f in-* out-*
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

@test "a waiter that does not come in its turn holds up the others for 2 s at most" {
	is_woken_late run run 0
	assert_between 1 "$TURN_MS" 1000
	run -0 rlock run -w 10s a -- true
	continue_waiters "${PIDS[waiter]}"
	enter_in_order waiter
	no_keys
}

# comes_from_afar VERB NAME...: a round trip takes longer than others, which come again and again, without a gap, need for the
# plain locks.
comes_from_afar() {
	local name here=$RLOCK_URL
	for name in "${@:2}"; do
		for _ in 1 2; do
			in_background sh -c 'until [ -e enough ]; do rlock run "$0" -- timeout 0.3 tail -f /dev/null; done' "$name"
		done
		wait_until 5 has_waiters "$name"
	done
	start_prompt_proxy
	proxy far 10
	run -0 rlock "$1" -w 20s "${@:2}" -- true
	RLOCK_URL=$here
	touch enough
}

# Callers for either one take no notice of the other one's queue.
@test "a waiter for a fair lock far away has its turn while callers for the plain lock come and go" {
	comes_from_afar fair a
}

@test "a waiter for several names far away has its turn while others come and go for each" {
	comes_from_afar run a b
}

@test "a free name is kept for a waiter of several names until the other one is released" {
	start_holder x run a
	start_holder y run b
	start_contender both run a b
	wait_until 5 has_waiters b
	queue_contender one run a
	pause_for 2.2
	finish_contenders x
	wait_until 5 is_held 'rlock_turn:{a}'
	stays_true_for 0.5 is_free a
	finish_contenders y
	enters_when_woken both
	are_waiting one
	finish_contenders both one
	no_keys
}

# come_and_go HOW VERB COUNT SECONDS: so many shells, each in the lock again and again for so long, until the file "enough" is
# there.
come_and_go() {
	local number
	for ((number = 0; number < $3; number++)); do
		in_background sh -c 'until [ -e enough ]; do
			rlock "$1" a -- sh -c "shared_turn \$0; sleep \$1" "$0" "$2" || exit
		done' "$1" "$2" "$4"
	done
	wait_until 10 file_has_line turns "$1"
}

@test "readers and writers that come and go keep none out, and never is a reader in with a writer, or two writers" {
	not_under_valgrind 'its waiters are not there in time'
	# By themselves readers would keep a writer out: one or another is always in.
	come_and_go read read 5 1
	wait_until 20 stays_true_for 1.5 is_held a
	run -0 rlock write -w 20s a -- shared_turn write
	come_and_go write write 3 0.05
	for _ in 1 2 3; do
		run -0 rlock read -w 20s a -- shared_turn read
		# It goes on as a reader, and its part as the writer is over before.
		run -0 rlock write -w 20s a -- sh -c 'shared_turn write; rlock read a -- rlock read a -- true'
		run -0 bash -c 'rlock read --pid $$ a && shared_turn read && rlock unlock a'
	done
	touch enough
	all_ended_with 0
	[ ! -e wrong ] || fail "$(cat wrong)"
	nothing_is_left
}

# ---- others than ours ----

# Mostly; a part is left to chance.
others_have_turn() {
	rlock run -n a -- true
	redis_says - get 'rlock_turn:{a}'
}

@test "after a turn of ours the others have time for one of theirs" {
	# As Redisson's waiters do, one listens to the channel of the lock, and tries nothing.
	in_background redis-cli -s "$SERVER_SOCKET" subscribe 'redisson_lock__channel:{a}'
	wait_until 5 has_subscribers 1
	wait_until 5 others_have_turn
	# One that does not wait takes what is free.
	run -0 rlock run -n a -- true
	wait_until 5 others_have_turn
	# One that waits does so for that time.
	run -0 rlock run -w 2s a -- true
	kill "${BACKGROUND[0]}"
	wait_until 5 no_keys
}
