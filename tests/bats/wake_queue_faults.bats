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
