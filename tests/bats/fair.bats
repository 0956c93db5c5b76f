#!/usr/bin/env bats
# bats file_tags=long
# rlock fair: first come, first served, in one queue with Java's threads. What stands on the server, a lock that is
# re-entered, and one of another kind. Whose turn it is: fair_order.bats; which release wakes a waiter: fair_woken.bats;
# which call is turned away, or leaves: fair_leaving.bats; without a command: fair_scripts.bats. What happens to the queue is in
# queue_*.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that; PIDS is queue.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/clocks

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what stands on the server ----

@test "an undisturbed fair run makes one request to acquire the lock and one to release it" {
	run -0 rlock fair warm -- true
	redis config resetstat >/dev/null
	run -0 rlock fair a -- true
	assert_equal "$(redis info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p')" 2
	run -1 grep -cE '^cmdstat_(eval|subscribe):' < <(redis info commandstats)
}

# scores_are_ahead NAME...: by 300 s for its position and each one before it, and not by hours.
scores_are_ahead() {
	local party position=0 ahead
	for party; do
		((position += 1))
		ahead=$(ahead_ms a "$party")
		((ahead >= position * 300000 && ahead <= 30000 + (position + 1) * 300000)) || return
	done
}

@test "each waiter in the queue has a score, each 300 s further ahead than the one before" {
	start_holder r0 fair a
	for party in r1 r2 r3 r4 r5; do
		queue_waiter "$party" a
	done
	assert_equal "$(redis zcard 'redisson_lock_timeout:{a}')" 5
	scores_are_ahead r1 r2 r3 r4 r5
	let_all_leave r0 r1 r2 r3 r4 r5
	nothing_is_left
}

@test "a release notifies the head of the queue on a channel of its own, and no other waiter in it" {
	local head
	start_holder r0 fair a
	queue_waiter r1 a
	queue_waiter r2 a
	queue_waiter r3 a
	head=$(owner_in_queue a r1)
	record_messages
	let_leave r0
	await_entry r1
	run -0 show_messages
	# The lock's own channel is for plain waiters.
	assert_equal "$(grep -vx 'redisson_lock__channel:{a} 0' <<<"$output" | sort -u)" "redisson_lock__channel:{a}:$head 0"
	let_all_leave r1 r2 r3
	nothing_is_left
}

# ---- re-entered ----

@test "fair in fair, plain in fair and fair in plain are one lock re-entered" {
	for verbs in 'fair fair' 'run fair' 'fair run'; do
		# shellcheck disable=SC2086
		set -- $verbs
		run -0 timeout 10 rlock "$1" a -- sh -c 'rlock '"$2"' -n a -- $REDIS hvals a; $REDIS hvals a'
		assert_output "2
1"
		no_keys
	done
}

@test "a command is told that its lock is a fair one" {
	run -0 rlock fair a -- sh -c 'echo "$RLOCK_MODE $RLOCK_NAME"'
	assert_output 'fair a'
}

@test "a fair lock is issued fencing tokens, and a call that was turned away none" {
	run -0 rlock fair --fence a -- sh -c 'echo "$RLOCK_TOKEN"'
	assert_output 1
	start_holder r0 fair a --fence
	run -75 rlock fair --fence -n a -- true
	run -75 rlock fair --fence -w 50ms a -- true
	queue_passer r1 --fence a
	assert_equal "$(redis get 'redisson_lock_token:{a}')" 2
	let_leave r0
	ended_with 0 "${PIDS[r1]}"
	assert_equal "$(redis get 'redisson_lock_token:{a}')" 3
	keys_are 'redisson_lock_token:{a}'
}

# ---- locks of another kind ----
