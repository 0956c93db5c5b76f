#!/usr/bin/env bats
# bats file_tags=long
# Waiters for any lock but a fair one when there are many: each release wakes one of them; the next one is woken when that
# one dies, stops or gives up; and one that has waited for long is not overtaken, and holds up none for long. Which of them
# acquires the lock: run_waiting.bats and readwrite.bats.

# SOON is waking.bash's, and has no blanks; one loop has no use for its number.
# shellcheck disable=SC2034,SC2086

load ../lib/usual
load ../lib/sharing
load ../lib/waking
load ../lib/proxying

setup_file() { start_server_at_port; }

# ---- how much a release costs ----

# How often waiters were woken that ran with -v, and their errors in "log".
times_woken() {
	grep -c ': woken$' log
}

# Others may try by their own clocks just then, and be there first, more often on a busy machine. Were all woken by each
# release, it would be 210 times.
@test "of twenty waiters for a plain lock each release wakes one" {
	local i woken
	hold_until_let_go run a
	for i in {1..20}; do
		in_background rlock run -v a -- true 2>>log
	done
	wait_until 10 has_waiters a 20
	let_go
	all_ended_with 0
	woken=$(times_woken)
	((woken >= 10 && woken <= 100)) || fail "woken $woken times"
	no_keys
}

@test "a waiter for several names that is woken for one of them leaves it to the next" {
	hold_until_let_go run a
	hold_until_let_go run b
	in_background rlock run a b -- sh -c 'echo both >>turns'
	wait_until 5 has_waiters a
	wait_as 1 a -v 2>said
	# Only a becomes free.
	kill -TERM "${BACKGROUND[0]}"
	touch out
	soon_or_woken $SOON said had_turns 1
	let_go
	wait_until 5 had_turns 1 both
	wait_until 5 no_keys
}

@test "a release by Redisson wakes the first waiter, and not the others" {
	local i
	held_by_stranger a
	touch out
	for i in 1 2 3 4 5; do
		wait_as "$i" a -v 2>>log
	done
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	wait_until 10 has_lines turns 5
	all_ended_with 0
	(($(times_woken) >= 2 && $(times_woken) <= 7)) || fail "woken $(times_woken) times"
	no_keys
}

# Each is woken by each release, as Redisson's are.
@test "a user without the right to the queue, or to a channel for each waiter, waits without" {
	local rules
	for rules in '~a ~rlock_holds:* ~rlock_waiters:* ~redisson_* &*' '~* &redisson_lock__channel:{a}'; do
		rm -f turns out let-go log
		# shellcheck disable=SC2086
		redis acl setuser limited on '>secret' resetkeys resetchannels +@all $rules >/dev/null
		hold_until_let_go run a
		for i in 1 2; do
			in_background rlock run -u "redis://limited:secret@127.0.0.1:$PORT" -v a -- sh -c 'echo turn >>turns' 2>>log
		done
		wait_until 5 has_listeners 2
		has_waiters a 0
		let_go
		all_ended_with 0
		(($(times_woken) >= 1))
	done
	# A turn that was given to others is there for a moment.
	wait_until 5 no_keys
}

@test "a key of another type in the place of the queue keeps none from the lock" {
	redis set 'rlock_queue:{a}' mine >/dev/null
	hold_until_let_go run a
	in_background rlock run -v a -- true 2>said
	wait_until 5 has_listeners 1
	let_go
	soon_or_woken $SOON said ended_with 0
	assert_equal "$(redis get 'rlock_queue:{a}')" mine
	redis del 'rlock_queue:{a}' >/dev/null
}

# ---- what becomes of a waiter ----

# stop_when_woken: of two waiters the first, FIRST, is woken, and does not act on it.
stop_when_woken() {
	hold_until_let_go run a
	wait_as 1 a
	FIRST=$PID
	wait_as 2 a -v 2>said
	stop_waiters "$FIRST"
	let_go
	wait_until 5 is_free a
}

@test "a waiter that is killed once it was woken holds up the others for a few seconds" {
	stop_when_woken
	touch out
	kill_with_renewers "$FIRST"
	# The wait for the end of the lease would be 30 s.
	wait_until 7 had_turns 2
	ended_with 0
	no_keys
}

@test "a waiter that is woken and gives up by SIGTERM wakes the next one" {
	stop_when_woken
	continue_told TERM "$FIRST"
	touch out
	soon_or_woken $SOON said had_turns 2
	ended_with 0
	ended_with 143 "$FIRST"
	no_keys
}

# ---- those that come later ----

# turn_begins MS: the lock is not held for writing any more. TURN_MS is then for how long a waiter has the next turn, and it has
# it for MS from then on, by the same request: a turn lasts for a second, and the next call may begin late. 0: it is left so.
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

# woken_after SECONDS VERB [MS [HOLDER]]: a waiter, PID, that has waited for so long is woken, and stopped before it acts on that.
# Its turn lasts for MS, 20000 else. WAITED_MS is for how long it waited at most. HOLDER is another verb of the holder.
woken_after() {
	local start
	hold_until_let_go "${4:-$2}" a
	start=$(now_ms)
	in_background rlock "$2" a -- sh -c 'echo waiter >>turns'
	wait_until 5 has_waiters a
	let_pass "$1"
	stop_waiters "$PID"
	let_go
	wait_until 5 turn_begins "${3:-20000}"
	WAITED_MS=$(($(now_ms) - start))
}

@test "a waiter for a plain lock that has waited for 2 s is not overtaken" {
	local waiter
	woken_after 2.2 run
	waiter=$PID
	run -75 rlock run -n a -- true
	in_background rlock run a -- sh -c 'echo later >>turns'
	wait_until 5 has_waiters a
	continue_waiters "$waiter"
	wait_until 10 had_turns waiter later
	all_ended_with 0
	no_keys
}

@test "a writer does not overtake a reader that has waited for 2 s" {
	local reader
	woken_after 2.2 rlock 20000 wlock
	reader=$PID
	run -75 rlock wlock -n a -- true
	in_background rlock wlock a -- sh -c 'echo later >>turns'
	wait_until 5 has_waiters a
	continue_waiters "$reader"
	wait_until 10 had_turns waiter later
	all_ended_with 0
	no_keys
}

@test "a waiter that does not come in its turn holds up the others for 2 s at most" {
	woken_after 2.2 run 0
	assert_between 1 "$TURN_MS" 1000
	run -0 rlock run -w 10s a -- true
	continue_waiters "$PID"
	all_ended_with 0
	no_keys
}

# keep_coming VERB NAME: one comes again and again, without a gap, until the file "enough" is there.
keep_coming() {
	in_background sh -c 'until [ -e enough ]; do rlock "$0" "$1" -- timeout 0.3 tail -f /dev/null; done' "$1" "$2"
}

# comes_from_afar VERB NAME...: a round trip takes longer than those in front need for the lock.
comes_from_afar() {
	local here=$RLOCK_URL
	start_prompt_proxy
	proxy far 10
	run -0 rlock "$1" -w 20s "${@:2}" -- true
	RLOCK_URL=$here
	touch enough
}

# Callers for either one take no notice of the other one's queue.
@test "a waiter for a fair lock far away has its turn while callers for the plain lock come and go" {
	keep_coming run a
	keep_coming run a
	wait_until 5 has_waiters a
	comes_from_afar fair a
}

@test "a waiter for several names far away has its turn while others come and go for each" {
	for name in a b; do
		keep_coming run "$name"
		keep_coming run "$name"
	done
	wait_until 5 has_waiters a
	wait_until 5 has_waiters b
	comes_from_afar run a b
}

# both_wait: a waiter for a and b has waited for more than 2 s, while they are held until "let-a" and "let-go" are there; and
# one that came later waits for a.
both_wait() {
	in_background rlock run a -- comes_true test -e let-a
	wait_until 5 is_held a
	hold_until_let_go run b
	in_background rlock run -v a b -- sh -c 'echo both >>turns' 2>said
	wait_until 5 has_waiters b
	wait_as 1 a
	touch out
	let_pass 2.2
}

@test "a free name is kept for a waiter of several names until the other one is released" {
	both_wait
	touch let-a
	wait_until 5 is_held 'rlock_turn:{a}'
	stays 0.5 is_free a
	let_go
	soon_or_woken $SOON said had_turns both 1
	all_ended_with 0
	no_keys
}

# ---- others than ours ----

# others_wait: as Redisson's waiters do, one listens to the channel of the lock, and tries nothing.
others_wait() {
	in_background redis-cli -s "$SERVER_SOCKET" subscribe 'redisson_lock__channel:{a}'
	wait_until 5 has_listeners 1
}

# Mostly; a part is left to chance.
others_have_turn() {
	rlock run -n a -- true
	redis_says - get 'rlock_turn:{a}'
}

@test "after a turn of ours the others have time for one of theirs" {
	others_wait
	wait_until 5 others_have_turn
	# One that does not wait takes what is free.
	run -0 rlock run -n a -- true
	wait_until 5 others_have_turn
	# One that waits does so for that time.
	run -0 rlock run -w 2s a -- true
	kill "${BACKGROUND[0]}"
	wait_until 5 no_keys
}
