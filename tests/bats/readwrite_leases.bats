#!/usr/bin/env bats
# bats file_tags=long
# How long read and write locks last: each reader's hold for itself, renewed by no other; what is left when one
# of them leaves, dies, or wants the lock kept for a while; and locks that get lost.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- leases ----

@test "a reader that leaves leaves the lock as long to live as the longest of those that stay" {
	local long short
	admit_guest long rlock a -t 1m
	long=$PID
	admit_guest short rlock a -t 10s
	short=$PID
	ttl_between 50000 a 60000
	let_guest_out long
	ended_with 0 "$long"
	ttl_between 5000 a 10000
	ttl_between 5000 'rlock_holds:{a}' 10000
	admit_guest long2 rlock a -t 1m
	let_guest_out short
	ended_with 0 "$short"
	ttl_between 50000 a 60000
}

@test "a writer's lock is renewed for as long as its command runs, and a reader's with its timeout keys" {
	admit_guest w wlock a -t 3s
	admit_guest r rlock b -t 3s
	local owner
	owner=$(owner_of b "$PID")
	stays 5 is_held a &
	stays 5 is_held "{b}:$owner:rwlock_timeout:1"
	wait $!
	is_held b
	is_mode a write
	is_mode b read
}

@test "a long lease that a Java reader has cut to 30 s is put right before they are over" {
	admit_guest r rlock a -t 2m
	# What Java's watchdog does to the lock, and up to Redisson 4.3 to each reader's timeout key as well.
	redis pexpire a 15000 >/dev/null
	redis keys '{a}:*:rwlock_timeout:*' | xargs -I KEY ask_redis "$SERVER_SOCKET" pexpire KEY 15000 >/dev/null
	wait_until 12 ttl_between 100000 a 120000
	ttl_between 100000 "$(redis keys '{a}:*:rwlock_timeout:*')" 120000
	let_guest_out r
	ended_with 0
}

@test "a writer that waits gets in without a message once all readers are dead and their lease is over" {
	local first second
	admit_guest r1 rlock a -t 2s
	first=$PID
	admit_guest r2 rlock a -t 2s
	second=$PID
	queue_guest w wlock a
	record_channel 'redisson_rwlock:{a}'
	kill_holder "$first"
	stays_outside 2.5 w
	kill_holder "$second"
	wait_until 8 is_inside w
	assert_equal "$(show_channel 'redisson_rwlock:{a}')" ''
}

@test "an rlock that is killed leaves its command the read or write lock, until that ends" {
	local verb
	for verb in rlock wlock; do
		admit_guest "$verb" "$verb" a -t 9s
		kill -KILL "$PID"
		wait_until 5 is_gone "$PID"
		wait_until 5 ttl_is_below a 8000
		wait_until 8 is_renewed a 9000
		run -75 rlock wlock -n a -- true
		let_guest_out "$verb"
		wait_until 5 no_keys
	done
}

@test "unlock of a reader's lease that has ended finds no lock, though other readers hold on" {
	admit_guest other rlock a
	run -0 rlock rlock --owner job-1 --lease 1s a
	wait_until 5 is_free '{a}:job-1:0:rwlock_timeout:1'
	# As for any lock of an owner that has ended.
	run -1 rlock unlock --owner job-1 a
}

@test "renew does not revive a reader's lease that has ended, though other readers hold on" {
	admit_guest other rlock a
	run -0 rlock rlock --owner job-1 --lease 1s a
	wait_until 5 is_free '{a}:job-1:0:rwlock_timeout:1'
	run -1 rlock renew --owner job-1 a
	is_free '{a}:job-1:0:rwlock_timeout:1'
}

# ---- at least ----

@test "--at-least keeps a read lock held, without an owner: readers share it, writers wait" {
	local held
	held=$(rlock rlock --at-least 1m a -- printenv RLOCK_HELD)
	is_mode a read
	assert_equal "$(redis hlen a)" 2
	ttl_between 50000 a 60000
	run -75 rlock wlock -n a -- true
	# The owner that it had is a stranger too: for itself it would wait in vain.
	RLOCK_HELD=$held run -75 rlock wlock -n a -- true
	run -0 rlock rlock -n a -- ask_redis "$SERVER_SOCKET" hlen a
	assert_output 3
	ttl_between 50000 a 60000
	run -75 rlock wlock -n a -- true
}

# ---- lost ----

@test "a read lock that is lost stops its command: 76" {
	admit_guest r rlock a -t 1s
	redis del a >/dev/null
	ended_with 76
	run -0 cat said-r
	assert_one_line '^rlock: a: lock lost at '
	wait_until 2 no_keys
}

@test "a reader whose timeout key was deleted has lost its lock, and the others haven't" {
	local lost kept
	admit_guest lost rlock a -t 1s
	lost=$PID
	admit_guest kept rlock a -t 1s
	kept=$PID
	redis del "$(timeout_key a "$(owner_of a "$lost")" 1)" >/dev/null
	ended_with 76 "$lost"
	stays 1.2 is_running "$kept"
	let_go
	ended_with 0 "$kept"
	wait_until 2 no_keys
}
