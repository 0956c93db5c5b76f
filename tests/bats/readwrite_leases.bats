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

@test "a reader that is dead does not count for how long the lock lasts, nor keep it" {
	admit_guest r1 rlock a
	local first=$PID
	admit_guest r2 rlock a -t 10s
	# Its timeout key has expired.
	redis hset a "$JAVA" 3 >/dev/null
	let_guest_out r1
	ended_with 0 "$first"
	ttl_between 5000 a 10000
	assert_equal "$(redis hget a "$JAVA")" 3
	queue_guest w wlock a
	let_guest_out r2
	# What kept the lock would do so for 10 s.
	wait_until 5 is_inside w
	assert_equal "$(redis hlen a)" 2
}

@test "a reader that re-enters with a shorter lease shortens nothing" {
	run -0 rlock rlock a -- sh -c '
		rlock rlock -n -t 2s a -- $REDIS pttl a
		$REDIS pttl a
		$REDIS pttl "{a}:$RLOCK_OWNER:rwlock_timeout:1"
	'
	assert_equal "${#lines[@]}" 3
	for line in "${lines[@]}"; do
		assert [ "$line" -gt 25000 ]
	done
}

@test "a longer lease inside keeps a read or write lock for no longer than it is held" {
	for verb in rlock wlock; do
		run -0 rlock "$verb" a -- sh -c 'rlock "$0" -n -l 10m a -- $REDIS pttl a; $REDIS pttl a
			$REDIS pttl "rlock_holds:{a}"' "$verb"
		assert [ "${lines[0]}" -gt 590000 ]
		assert [ "${lines[1]}" -le 30000 ]
		assert [ "${lines[2]}" -le 30000 ]
	done
	run -0 rlock rlock a -- sh -c 'rlock rlock -n -l 10m a -- true; $REDIS pttl "{a}:$RLOCK_OWNER:rwlock_timeout:1"'
	assert [ "$output" -le 30000 ]
	no_keys
}

@test "a writer that re-enters sets the lease, and adds nothing to it" {
	run -0 rlock wlock a -- sh -c 'rlock wlock -n a -- rlock wlock -n -t 20s a -- $REDIS pttl a
		rlock wlock -n -t 1m a -- $REDIS pttl a'
	assert [ "${lines[0]}" -gt 25000 ]
	assert [ "${lines[0]}" -le 30000 ]
	assert [ "${lines[1]}" -gt 55000 ]
	assert [ "${lines[1]}" -le 60000 ]
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

@test "each of two holds of a reader is renewed" {
	in_background rlock rlock -t 3s a -- rlock rlock -n -t 3s a -- inside r
	local owner
	wait_until 5 is_inside r
	owner=$(owner_of a "$PID")
	stays 4 is_held "{a}:$owner:rwlock_timeout:1" &
	stays 4 is_held "{a}:$owner:rwlock_timeout:2"
	wait $!
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

@test "a dead reader's hold expires while another reader goes on" {
	local dead living
	admit_guest dead rlock a -t 3s
	dead=$(owner_of a "$PID")
	local pid=$PID
	admit_guest living rlock a -t 3s
	living=$(owner_of a "$PID")
	kill_holder "$pid"
	wait_until 6 is_free "{a}:$dead:rwlock_timeout:1"
	stays 4 is_held "{a}:$living:rwlock_timeout:1"
	is_free "{a}:$dead:rwlock_timeout:1"
	is_held a
	# A release drops it.
	let_guest_out living
	ended_with 0
	no_keys
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

@test "a waiter gets in without a message once the writer is dead and its lease is over" {
	local holder verb
	for verb in rlock wlock; do
		admit_guest w wlock a -t 3s
		holder=$PID
		queue_guest "$verb" "$verb" a
		kill_holder "$holder"
		wait_until 8 is_inside "$verb"
		let_go
		wait_until 5 no_keys
		rm -f let-go in-*
	done
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

@test "a fixed lease of a reader and of a writer ends the command, and the lock" {
	run -124 rlock rlock -l 3s a -- until_let_go
	assert_one_line '^rlock: a: .*lease'
	no_keys
	run -124 rlock wlock -l 3s a -- until_let_go
	assert_one_line '^rlock: a: .*lease'
	no_keys
}

@test "a fixed lease inside a read or write lock does not shorten it, and ends its own command only" {
	local verb
	for verb in rlock wlock; do
		run -0 rlock "$verb" a -- sh -c '
			rlock "$0" -l 1s --grace 100ms a -- sleep 60 2>/dev/null
			echo $?
			$REDIS hlen a
			$REDIS hvals a
			$REDIS pttl a
			rlock "$0" -n a -- $REDIS hvals a
		' "$verb"
		assert_line -n 0 124
		assert_line -n 1 2
		assert_line -n 3 1
		assert [ "${lines[4]}" -gt 25000 ]
		assert_line -n 6 2
		no_keys
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

@test "a reader's lease that has ended does not keep its owner from waiting to write" {
	admit_guest other rlock a
	run -0 rlock rlock --owner job-1 --lease 1s a
	wait_until 5 is_free '{a}:job-1:0:rwlock_timeout:1'
	run -75 rlock wlock --owner job-1 --lease 1m -n a
	in_background rlock wlock --owner job-1 --lease 1m a
	wait_until 5 has_listeners
	let_guest_out other
	ended_with 0
	is_mode a write
}

@test "a reader whose lease has ended acquires the lock anew, and releases it by one unlock" {
	admit_guest other rlock a
	run -0 rlock rlock --owner job-1 --lease 1s a
	wait_until 5 is_free '{a}:job-1:0:rwlock_timeout:1'
	run -0 rlock rlock --owner job-1 --lease 1m -n a
	ttl_between 50000 a 60000
	run -0 rlock unlock --owner job-1 a
	let_guest_out other
	ended_with 0
	no_keys
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

@test "--at-least keeps a write lock held, without an owner: all wait" {
	local held
	held=$(rlock wlock --at-least 1m a -- printenv RLOCK_HELD)
	is_mode a write
	assert_equal "$(redis hlen a)" 2
	ttl_between 50000 a 60000
	run -75 rlock wlock -n a -- true
	run -75 rlock rlock -n a -- true
	RLOCK_HELD=$held run -75 rlock wlock -n a -- true
	RLOCK_HELD=$held run -75 rlock rlock -n a -- true
}

@test "a lock that was kept at least so long expires, without leaving a key" {
	local start
	start=$(now_ms)
	run -0 rlock rlock --at-least 700ms a -- true
	run -0 rlock wlock -w 10s a -- true
	(($(now_ms) - start >= 650)) || fail 'too early'
	(($(now_ms) - start <= 3500)) || fail 'too late'
	# The server counts those that have just run out.
	wait_until 5 no_keys
	start=$(now_ms)
	run -0 rlock wlock --at-least 700ms a -- true
	run -0 rlock rlock -w 10s a -- true
	(($(now_ms) - start >= 650)) || fail 'too early'
	(($(now_ms) - start <= 3500)) || fail 'too late'
	wait_until 5 no_keys
	run -0 rlock rlock --at-least 300ms a -- true
	wait_until 2 no_keys
}

@test "a waiter that waits while a writer is in learns of the shorter time that --at-least leaves" {
	admit_guest w wlock a --at-least 1s
	queue_guest r rlock a
	let_guest_out w
	ended_with 0 "${BACKGROUND[0]}"
	wait_until 8 is_inside r
}

@test "a reader that leaves one of its holds by --at-least keeps the others" {
	run -0 rlock rlock a -- sh -c '
		rlock rlock -n --at-least 1m a -- true
		$REDIS hget a $RLOCK_OWNER
		rlock rlock -n a -- $REDIS hget a $RLOCK_OWNER
	'
	assert_output "1
2"
	is_mode a read
	assert_equal "$(redis hlen a)" 2
	run -75 rlock wlock -n a -- true
	run -0 rlock rlock -n a -- true
}

@test "--at-least for a read or a write inside one's own write lock outlasts that" {
	run -0 rlock wlock a -- sh -c 'rlock rlock -n --at-least 1m a -- true; $REDIS hget a mode; rlock wlock -n a -- true'
	assert_output write
	is_mode a read
	ttl_between 50000 a 60000
	run -75 rlock wlock -n a -- true
	run -0 rlock rlock -n a -- true
	run -0 rlock wlock b -- sh -c 'rlock wlock -n --at-least 1m b -- true; rlock rlock -n b -- true'
	is_mode b write
	ttl_between 50000 b 60000
	run -75 rlock wlock -n b -- true
	run -75 rlock rlock -n b -- true
}

@test "other readers get in when what --at-least kept of a write lock ends, though its owner reads on" {
	run -0 rlock wlock --at-least "$((5 * SLOWNESS))s" a -- sh -c 'rlock rlock -n a -- inside own >/dev/null 2>&1 3>&- &
		comes_true test -e in-own'
	run -75 rlock rlock -n a -- true
	run -75 rlock wlock -n a -- true
	run -0 rlock rlock -w 30s a -- true
	is_mode a read
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

@test "a write lock that is lost stops its command: 76" {
	admit_guest w wlock a -t 1s
	redis del a >/dev/null
	ended_with 76
	run -0 cat said-w
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

@test "a reader whose lock is gone makes nothing of it again, and touches no other's" {
	admit_guest r rlock a -t 1s
	redis del a >/dev/null
	redis hset a mode write "$JAVA:write" 1 >/dev/null
	redis pexpire a 60000 >/dev/null
	ended_with 76
	assert_equal "$(redis hgetall a)" "mode
write
$JAVA:write
1"
	ttl_between 50000 a 60000
}

@test "a script learns from unlock and renew that its read or write lock was lost" {
	for verb in rlock wlock; do
		run -76 bash -c 'rlock "$1" --pid $$ a; $REDIS del a >/dev/null; rlock unlock a; exit' script "$verb"
		assert_one_line '^rlock: a: .*lost.*$'
		run -76 bash -c 'rlock "$1" --pid $$ a; $REDIS del a >/dev/null; rlock renew a; exit' script "$verb"
		assert_one_line '^rlock: a: .+$'
	done
}
