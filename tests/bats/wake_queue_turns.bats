#!/usr/bin/env bats
# Waiters for any lock but a fair one, and callers that come later: one that has waited for long is not overtaken, and holds up
# none for long.

# In single quotes stand whole scripts; SOON is waking.bash's, and has no blanks; one loop has no use for its number.
# shellcheck disable=SC2016,SC2034,SC2086

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/waking
load ../lib/proxying

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

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

# has_next_turn VERB: it has waited for more than 2 s.
has_next_turn() {
	local waiter
	woken_after 2.2 "$1"
	waiter=$PID
	run -75 rlock "$1" -n a -- true
	in_background rlock "$1" a -- sh -c 'echo later >>turns'
	wait_until 5 has_waiters a
	continue_waiters "$waiter"
	wait_until 10 has_lines turns 2
	assert_equal "$(cat turns)" $'waiter\nlater'
	all_ended_with 0
	no_keys
}

@test "a waiter for a plain lock that has waited for 2 s is not overtaken" {
	has_next_turn run
}

@test "a reader does not overtake a writer that has waited for 2 s" {
	woken_after 2.2 wlock
	run -75 rlock rlock -n a -- true
	continue_waiters "$PID"
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

# reads_as READER: a reader in the background, which stays until the file "out" is there.
reads_as() {
	in_background rlock rlock a -- sh -c 'echo "$0" >>turns; comes_true test -e out' "$1"
}

@test "a reader in its turn lets in the readers that came after it, and then the writer" {
	local reader
	woken_after 2.2 rlock 20000 wlock
	reader=$PID
	reads_as 1
	wait_until 5 has_waiters a 1
	in_background rlock wlock a -- sh -c 'echo writer >>turns'
	wait_until 5 has_waiters a 2
	reads_as 2
	wait_until 5 has_waiters a 3
	assert [ ! -e turns ]
	continue_waiters "$reader"
	wait_until 10 has_lines turns 3
	# It is the writer's turn next.
	wait_until 3 is_held 'rlock_writer:{a}'
	run -75 rlock rlock -n a -- true
	touch out
	wait_until 5 has_lines turns 4
	assert_equal "$(sort turns)" $'1\n2\nwaiter\nwriter'
	assert_equal "$(tail -n 1 turns)" writer
	all_ended_with 0
	no_keys
}

# keep_coming VERB NAME: one comes again and again, without a gap, until the file "enough" is there.
keep_coming() {
	in_background sh -c 'until [ -e enough ]; do rlock "$0" "$1" -- timeout 0.3 tail -f /dev/null; done' "$1" "$2"
}

# comes_from_afar VERB NAME...: a round trip takes longer than those in front need for the lock.
comes_from_afar() {
	local here=$RLOCK_URL start
	start_prompt_proxy
	proxy far 10
	start=$(now_ms)
	run -0 rlock "$1" -w 20s "${@:2}" -- true
	((start = $(now_ms) - start, start < 5000 * SLOWNESS)) || fail "it waited for $start ms"
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

@test "a waiter that does not come in its turn holds up the others for 2 s at most" {
	woken_after 2.2 run 0
	assert_between 1 "$TURN_MS" 1000
	took_less 4 rlock run a -- true
	continue_waiters "$PID"
	all_ended_with 0
	no_keys
}

# ---- several names ----

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
	in_background rlock run a b -- sh -c 'echo both >>turns'
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
	within $SOON had_turns both 1
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
	wait_until 2 no_keys
}
