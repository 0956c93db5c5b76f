#!/usr/bin/env bats
# Read and write locks where something is wrong: a key of another kind, a full server, and a network that loses what passes.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/proxying

setup_file() { start_warm_server rlock wlock; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	redis config set maxmemory 0 >/dev/null
	watchful_teardown
}

# ---- keys of another kind ----

# refuses VERB TEXT: 78 with what stands there, waited for or not, and nothing has changed.
refuses() {
	local before option
	before=$(show_contents)
	for option in -q -n '-w20s'; do
		took_less 10 run -78 rlock "$1" $option a -- touch ran
		assert_one_line "^rlock: a: .*$2: take [a-z, ]*another name\$"
	done
	run -78 rlock "$1" -n b a -- touch ran
	assert_one_line "^rlock: a: .*$2: take [a-z, ]*another name\$"
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "where a plain or fair lock is held a read or write lock is refused, and it is left alone" {
	local verb
	for verb in run fair; do
		admit_guest "$verb" "$verb" a
		refuses rlock 'plain or fair lock'
		refuses wlock 'plain or fair lock'
		let_guest_out "$verb"
		ended_with 0
	done
	no_keys
}

@test "where a read or write lock is held a plain or fair lock is refused, and it is left alone" {
	local verb
	for verb in rlock wlock; do
		admit_guest "$verb" "$verb" a
		refuses run 'read/write lock'
		refuses lock 'read/write lock'
		refuses fair 'read/write lock'
		let_guest_out "$verb"
		ended_with 0
	done
	no_keys
}

@test "inside one's own lock of the other kind one is refused as well" {
	run -0 rlock run a -- sh -c 'exec 2>/dev/null
		rlock rlock a -- touch ran; echo $?; rlock wlock a -- touch ran; echo $?'
	assert_output "78
78"
	run -78 rlock rlock a -- rlock run a -- touch ran
	run -78 rlock wlock a -- rlock fair a -- touch ran
	refute file_exists ran
	no_keys
}

@test "a wait ends with 78 when the key becomes something else, and leaves nothing of its own" {
	local verb holder
	for verb in rlock wlock; do
		admit_guest "w-$verb" wlock a
		holder=$PID
		queue_guest "$verb" "$verb" a
		# In one step: a waiter that looks between two would get in.
		redis eval 'redis.call("del", KEYS[1], KEYS[2]) redis.call("hset", KEYS[1], ARGV[1], 1)' \
			2 a 'rlock_holds:{a}' "$JAVA" >/dev/null
		redis publish 'redisson_rwlock:{a}' 1 >/dev/null
		ended_with 78
		run -0 cat "said-$verb"
		assert_one_line '^rlock: a: .*plain or fair lock: take another name$'
		assert_equal "$(list_keys)" a
		redis del a >/dev/null
		let_guest_out "w-$verb"
		ended_with 76 "$holder"
	done
	admit_guest r rlock a
	holder=$PID
	queue_guest w wlock a
	redis eval 'redis.call("flushall") redis.call("set", KEYS[1], "x")' 1 a >/dev/null
	redis publish 'redisson_rwlock:{a}' 1 >/dev/null
	ended_with 78
	wait_until 2 is_free 'rlock_writer:{a}'
	let_guest_out r
	wait_until 5 is_gone "$holder"
	assert_equal "$(list_keys)" a
	assert_equal "$(redis get a)" x
}

# ---- a server that is full ----

@test "a server that is full: a clear error, and no read or write lock" {
	redis config set maxmemory 1 >/dev/null
	for verb in rlock wlock; do
		run -69 rlock "$verb" a -- touch ran
		assert_one_line '^rlock: a: .*memory'
		refute file_exists ran
		no_keys
	done
}

# ---- replies that get lost ----

make_timeout_keys() {
	cat >timeout_keys <<-'EOS'
		#!/bin/sh
		# How many timeout keys there are.
		exec $REDIS eval 'return #redis.call("KEYS", "{a}:*")' 0
	EOS
	chmod +x timeout_keys
}

@test "replies are lost when a reader re-enters and leaves: each of its holds is counted a single time" {
	start_proxy
	make_timeout_keys
	run -0 rlock rlock a -- sh -c '
		control="unix:$BATS_TEST_TMPDIR/control"
		faultproxy -c "$control" drop-reply "rlock_writer:{a}" 2 >/dev/null
		faultproxy -c "$control" drop-reply "redisson_rwlock:{a}!rlock_writer:{a}" 2 >/dev/null
		rlock rlock -n a -- sh -c "\$REDIS hget a \$RLOCK_OWNER; ./timeout_keys"
		$REDIS hget a $RLOCK_OWNER
		./timeout_keys
	'
	assert_output $'2\n2\n1\n1'
	faults_happened
	no_keys
}

@test "a waiter for a read or write lock survives its connections, and a writer keeps its position" {
	admit_guest r1 rlock a
	queue_guest w wlock a
	queue_guest r2 rlock a
	for _ in 1 2 3; do
		redis client kill type normal >/dev/null
		redis client kill type pubsub >/dev/null
		wait_until 5 has_listeners 2
		is_outside r2
	done
	is_held 'rlock_writer:{a}'
	let_guest_out r1
	wait_until 5 is_inside w
	stays_outside 0.3 r2
	let_guest_out w
	wait_until 5 is_inside r2
	assert_equal "$(cat said-w said-r2)" ''
}

@test "a reader and a writer in a black hole are stopped before their lease ends: 76" {
	start_proxy
	local verb command end at seen
	for verb in rlock wlock; do
		admit_guest "$verb" "$verb" a -t 1s
		wait_until 5 is_renewed a 1000
		command=$(command_of "$PID")
		proxy blackhole on
		end=$(lease_end_ms a)
		while at=$(now_ms) && is_running "$command"; do
			seen=$at
			((seen < end)) || fail "runs $((seen - end)) ms after the end of the lease"
			let_pass 0.005
		done
		ended_with 76
		wait_until 2 no_keys
		proxy blackhole off
		proxy cut
	done
}
