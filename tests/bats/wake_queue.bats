#!/usr/bin/env bats
# Waiters for a plain or write lock when there are many: each release wakes one of them, whether it is ours or another's, of
# one name or of several, and whether or not there can be a queue. What becomes of the waiters in it: wake_queue_faults.bats;
# which has the next turn: wake_queue_turns.bats; which of them acquires the lock: run_waiting.bats and readwrite.bats.

# In single quotes stand whole scripts; SOON is waking.bash's, and has no blanks.
# shellcheck disable=SC2016,SC2086

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/waking

setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what the tests share ----

# How often waiters were woken that ran with -v, and their errors in "log".
times_woken() {
	grep -c ': woken$' log
}

# ---- how much a release costs ----

# wakes_one VERB: of twenty waiters nearly each is woken once, until all have had their turns. Others may try by their own
# clocks just then, and be there first, more often on a busy machine. Were all woken by each release, it would be 210 times.
wakes_one() {
	local i woken
	hold_until_let_go "$1" a
	for i in {1..20}; do
		in_background rlock "$1" -v a -- true 2>>log
	done
	wait_until 10 has_waiters a 20
	let_go
	all_ended_with 0
	woken=$(times_woken)
	((woken >= 10 && woken <= 100)) || fail "woken $woken times"
	no_keys
}

@test "of twenty waiters for a plain lock each release wakes one" {
	wakes_one run
}

@test "of several readers a release of a writer wakes all, and of the writers behind it one" {
	local i
	hold_until_let_go wlock a
	for i in 1 2; do
		in_background rlock wlock a -- sh -c 'echo writer >>turns'
	done
	for i in 3 4 5; do
		in_background rlock rlock a -- sh -c 'echo reader >>turns'
	done
	wait_until 5 has_listeners 5
	let_go
	all_ended_with 0
	assert_equal "$(sort turns | uniq -c | tr -s ' ')" ' 3 reader
 2 writer'
	no_keys
}

# ---- several names ----

@test "a waiter for several names that is woken for one of them leaves it to the next" {
	hold_until_let_go run a
	hold_until_let_go run b
	in_background rlock run a b -- sh -c 'echo both >>turns'
	wait_until 5 has_waiters a
	wait_as 1 a
	# Only a becomes free.
	kill -TERM "${BACKGROUND[0]}"
	touch out
	within $SOON had_turns 1
	let_go
	wait_until 5 had_turns 1 both
	wait_until 5 no_keys
}

# The reader's own hold has expired, and its nested call finds that out.
@test "a try that removes the last reader of one lock, and is busy with another, wakes the next waiter" {
	hold_until_let_go wlock b
	in_background rlock rlock a -- sh -c '
		comes_true test -e go
		$REDIS del "{a}:$RLOCK_OWNER:rwlock_timeout:1" >/dev/null
		rlock rlock --pid $$ -q -n a b
		echo $? >nested
		comes_true test -e turns'
	wait_until 5 is_held a
	in_background rlock wlock a -- sh -c 'echo writer >>turns'
	wait_until 5 has_waiters a
	touch go
	wait_until 5 test -e nested
	within $SOON had_turns writer
	assert_equal "$(cat nested)" 75
	let_go
	wait "${BACKGROUND[@]}" || :
	no_keys
}

# ---- others than ours ----

@test "a release by Redisson wakes the first waiter, and not the others" {
	local i
	held_by_stranger a
	touch out
	for i in 1 2 3 4 5; do
		wait_as "$i" a -v 2>>log
	done
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	within $SOON has_lines turns 5
	all_ended_with 0
	(($(times_woken) <= 7)) || fail "woken $(times_woken) times"
	no_keys
}

# ---- where there can't be a queue ----

# Each is woken by each release, as Redisson's are.
@test "a user without the right to the queue, or to a channel for each waiter, waits without" {
	local rules
	for rules in '~a ~rlock_holds:* ~rlock_waiters:* ~redisson_* &*' '~* &redisson_lock__channel:{a}'; do
		rm -f turns out let-go
		# shellcheck disable=SC2086
		redis acl setuser limited on '>secret' resetkeys resetchannels +@all $rules >/dev/null
		hold_until_let_go run a
		for i in 1 2; do
			in_background rlock run -u "redis://limited:secret@127.0.0.1:$PORT" a -- sh -c 'echo turn >>turns'
		done
		wait_until 5 has_listeners 2
		has_waiters a 0
		let_go
		within $SOON has_lines turns 2
		all_ended_with 0
	done
	# A turn that was given to others is there for a moment.
	wait_until 5 no_keys
}
