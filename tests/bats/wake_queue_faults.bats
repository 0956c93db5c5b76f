#!/usr/bin/env bats
# Waiters for a plain or write lock when those in front of them, or the holder, are killed, are stopped or give up, or when
# their subscriptions or the queue are gone: the next one is woken all the same.

# In single quotes stand whole scripts; SOON is waking.bash's, and has no blanks.
# shellcheck disable=SC2016,SC2086

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/waking

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what becomes of a waiter ----

has_pattern() {
	redis_says 1 pubsub numpat
}

@test "waiters that were killed do not hold up the next one" {
	local i
	# A monitor of all channels hears them still.
	in_background redis-cli -s "$SERVER_SOCKET" psubscribe '*'
	wait_until 5 has_pattern
	hold_until_let_go run a
	for i in 1 2 3 4 5; do
		wait_as "$i" a
		kill_live_waiter "$PID"
	done
	wait_as 6 a
	touch out
	let_go
	within $SOON had_turns 6
	ended_with 0
	kill "${BACKGROUND[0]}"
	no_keys
}

# stop_when_woken: of two waiters the first, FIRST, is woken, and does not act on it.
stop_when_woken() {
	hold_until_let_go run a
	wait_as 1 a
	FIRST=$PID
	wait_as 2 a
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

@test "a waiter that is stopped for long holds up the others once, and acquires the lock when it goes on" {
	local first
	hold_until_let_go run a
	wait_as 1 a
	first=$PID
	wait_as 2 a
	wait_as 3 a
	wait_as 4 a
	stop_waiters "$first"
	let_go
	wait_until 7 test -e turns
	touch out
	within $SOON has_lines turns 3
	continue_waiters "$first"
	within $SOON has_lines turns 4
	all_ended_with 0
	assert_equal "$(tail -n 1 turns)" 1
	no_keys
}

@test "four stopped waiters do not hold up the fifth for long" {
	local i
	hold_until_let_go run a
	for i in 1 2 3 4; do
		wait_as "$i" a
		stop_waiters "$PID"
	done
	wait_as 5 a
	let_go
	wait_until 7 had_turns 5
	touch out
	continue_waiters "${BACKGROUND[@]:1:4}"
	wait_until 5 has_lines turns 5
	all_ended_with 0
	no_keys
}

# So many waiters try seldom, and none tells the last one by its own try that the others had quick turns.
@test "a waiter that is stopped after many quick turns does not hold up the last one for long" {
	local i stopped
	hold_until_let_go run a
	for i in {1..12}; do
		in_background rlock run a -- sh -c 'echo "$1" >>turns' sh "$i"
	done
	wait_until 5 has_live_waiters a 12
	wait_as 13 a
	stopped=$PID
	wait_as 14 a
	stop_waiters "$stopped"
	let_go
	wait_until 20 has_lines turns 12
	# Among so many a waiter tries every 10 s, if it does not learn that it is in front.
	wait_until 7 grep -qx 14 turns
	touch out
	continue_waiters "$stopped"
	wait_until 5 has_lines turns 14
	all_ended_with 0
	no_keys
}

# Each would keep the lock from those behind it for a turn.
@test "several waiters that are stopped hold up those behind them once" {
	local i
	hold_until_let_go run a
	for i in 1 2 3 4 5; do
		wait_as "$i" a
	done
	stop_waiters "${BACKGROUND[@]:1}"
	wait_as 6 a
	wait_as 7 a
	let_go
	wait_until 7 has_lines turns 1
	wait_until 5 has_waiters a 1
	touch out
	within $SOON has_lines turns 2
	continue_waiters "${BACKGROUND[@]:1:5}"
	all_ended_with 0
	no_keys
}

@test "more dead waiters than are removed at once hold up none" {
	local i
	hold_until_let_go run a
	wait_as 1 a
	wait_as 2 a
	redis eval 'for i = 1, 1500 do redis.call("zadd", KEYS[1], i, "dead-" .. i) end' 1 'rlock_queue:{a}' >/dev/null
	touch out
	let_go
	wait_until 7 had_turns 1 2
	all_ended_with 0
	no_keys
}

# gives_up SIGNAL STATUS: the first was woken, and is told to end before it acts on it.
gives_up() {
	stop_when_woken
	continue_told "$1" "$FIRST"
	touch out
	within $SOON had_turns 2
	ended_with 0
	ended_with "$2" "$FIRST"
	no_keys
}

@test "a waiter that is woken and gives up by SIGTERM wakes the next one" {
	gives_up TERM 143
}

@test "a waiter that is woken and gives up by SIGINT wakes the next one" {
	gives_up INT 130
}

@test "a waiter that gives up before it is woken leaves the queue" {
	hold_until_let_go run a
	wait_as 1 a -w 5s
	kill -TERM "$PID"
	ended_with 143
	has_waiters a 0
	run -75 rlock run -q -w 300ms a -- true
	has_waiters a 0
	let_go
	ended_with 0 "${BACKGROUND[0]}"
	no_keys
}

@test "waiters whose subscriptions are cut are woken all the same" {
	hold_until_let_go run a
	wait_as 1 a
	wait_as 2 a
	redis client kill type pubsub >/dev/null
	touch out
	let_go
	within $SOON has_lines turns 2
	all_ended_with 0
	no_keys
}

@test "a queue that was deleted comes back" {
	hold_until_let_go run a
	wait_as 1 a
	wait_as 2 a
	redis del 'rlock_queue:{a}' >/dev/null
	# The second one is back when it tries next; the first one hears the lock as well.
	wait_until 4 has_waiters a
	touch out
	let_go
	within $SOON has_lines turns 2
	all_ended_with 0
	no_keys
}

@test "a key of another type in the place of the queue keeps none from the lock" {
	redis set 'rlock_queue:{a}' mine >/dev/null
	hold_until_let_go run a
	in_background rlock run a -- true
	wait_until 5 has_listeners 1
	let_go
	took_less 2 ended_with 0
	assert_equal "$(redis get 'rlock_queue:{a}')" mine
	redis del 'rlock_queue:{a}' >/dev/null
}

@test "the lease of a killed holder ends: the first waiter acquires the lock, and wakes the next" {
	in_background rlock run -t 3s a -- until_let_go
	wait_until 5 has_renewer "$PID"
	wait_as 1 a
	wait_as 2 a
	touch out
	kill_with_renewers "${BACKGROUND[0]}"
	wait_until 10 has_lines turns 2
	let_go
	wait_until 5 no_keys
}

# lease_ends VERB: of a holder that is killed together with the first five in a queue so long that the others try seldom.
lease_ends() {
	local i
	in_background rlock "$1" -t 2s a -- until_let_go
	wait_until 5 has_renewer "$PID"
	for i in {1..18}; do
		in_background rlock "$1" a -- sh -c 'echo "$1" >>turns' sh "$i"
		wait_until 5 has_waiters a "$i"
	done
	# When the first twelve came, the queue was not long.
	let_pass 3.5
	kill_with_renewers "${BACKGROUND[@]:0:6}"
	wait_until 6 is_free a
	wait_until 3 has_lines turns 13
	let_go
	wait_until 5 no_keys
}

@test "the lease of a killed holder of a plain lock ends, and the first waiters were killed with it" {
	lease_ends run
}

@test "the lease of a killed holder of a write lock ends, and the first waiters were killed with it" {
	lease_ends wlock
}
