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
		assert_one_line "^rlock: a: .*$2\$"
	done
	run -78 rlock "$1" -n b a -- touch ran
	assert_one_line "^rlock: a: .*$2\$"
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

@test "a key that is no lock at all is refused, and left alone" {
	local -a made
	for made in 'set a x' 'rpush a x' 'sadd a x' 'zadd a 1 x'; do
		# shellcheck disable=SC2086
		redis $made >/dev/null
		refuses rlock "$(redis type a)"
		refuses wlock "$(redis type a)"
		assert_equal "$(redis pttl a)" -1
		redis del a >/dev/null
	done
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
		assert_one_line '^rlock: a: .*plain or fair lock$'
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

@test "a plain lock that is waited for is nothing that a reader may pass" {
	held_by_stranger a
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	refuses rlock 'plain or fair lock'
	refuses wlock 'plain or fair lock'
	has_waiters a
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

@test "a read lock and a write lock are renewed and released on a server that is full" {
	for verb in rlock wlock; do
		run -0 rlock "$verb" a -- sh -c '
			$REDIS config set maxmemory 1 >/dev/null
			$REDIS pexpire a 5000 >/dev/null
			rlock renew a'
		assert_output --regexp '^(30s|29\.[0-9]+s)$'
		no_keys
		redis config set maxmemory 0 >/dev/null
	done
}

@test "a read lock and a write lock stay held on a server that gets full meanwhile" {
	local verb
	for verb in wlock rlock; do
		admit_guest "$verb" "$verb" a -t 3s
		redis config set maxmemory 1 >/dev/null
		stays 3.5 is_held a
		let_guest_out "$verb"
		ended_with 0
		assert_equal "$(cat "said-$verb")" ''
		no_keys
		redis config set maxmemory 0 >/dev/null
	done
}

@test "a server that is full: one of two holds is released, and a writer goes on as a reader" {
	run -0 rlock rlock a -- sh -c 'rlock rlock -n a -- $REDIS config set maxmemory 1 >/dev/null; $REDIS hvals a'
	assert_output "read
1"
	no_keys
	redis config set maxmemory 0 >/dev/null
	run -0 rlock wlock a -- sh -c 'rlock wlock -n a -- $REDIS config set maxmemory 1 >/dev/null; $REDIS hvals a'
	assert_output "write
1"
	no_keys
	redis config set maxmemory 0 >/dev/null
	run -0 rlock wlock a -- sh -c 'rlock rlock -n a -- inside r >/dev/null 2>&1 3>&- &
		comes_true test -e in-r; $REDIS config set maxmemory 1 >/dev/null'
	assert_output ''
	is_mode a read
	let_go
	wait_until 2 no_keys
}

@test "a server that is full: --at-least keeps a read and a write lock" {
	for verb in rlock wlock; do
		run -0 rlock "$verb" --at-least 1m a -- ask_redis "$SERVER_SOCKET" config set maxmemory 1
		assert_output OK
		ttl_between 50000 a 60000
		redis config set maxmemory 0 >/dev/null
		redis flushall >/dev/null
	done
}

# ---- replies that get lost ----

# Words that stand in one kind of request only, for the lock "a". A renewal has no word of its own: while no call
# acquires or releases the lock it is the one that names the holds.
ACQUIRE='rlock_writer:{a}'
RELEASE='redisson_rwlock:{a}!rlock_writer:{a}'
RENEW='rlock_holds:{a}'

make_timeout_keys() {
	cat >timeout_keys <<-'EOS'
		#!/bin/sh
		# How many timeout keys there are.
		exec $REDIS eval 'return #redis.call("KEYS", "{a}:*")' 0
	EOS
	chmod +x timeout_keys
}

# runs_once VERB [OPTION...]: the command runs once, with one hold, and nothing may be left.
runs_once() {
	rm -f ran
	make_timeout_keys
	run -7 rlock "$@" a -- sh -c 'echo >>ran; $REDIS hvals a; ./timeout_keys; exit 7'
	case $1 in
	rlock) assert_output $'read\n1\n1' ;;
	wlock) assert_output $'write\n1\n0' ;;
	esac
	has_lines ran 1
	no_keys
	faults_happened
}

@test "the reply to the acquire of a read or write lock is lost: the command runs once, and nothing is left" {
	start_proxy
	for verb in rlock wlock; do
		proxy drop-reply "$ACQUIRE"
		runs_once "$verb"
		proxy drop-reply "$ACQUIRE"
		runs_once "$verb" -n
		proxy drop-reply "$ACQUIRE" 3
		runs_once "$verb" -w 10s
		proxy cut-before "$ACQUIRE"
		runs_once "$verb"
	done
}

@test "the reply to the acquire of a read or write lock comes too late: the command runs once, with one hold" {
	start_proxy
	for verb in rlock wlock; do
		proxy hold-reply "$ACQUIRE"
		runs_once "$verb" -w 5s --connect-timeout 300ms
		proxy release
		no_keys
	done
}

@test "the reply to the release of a read or write lock is lost: the command's status stands, and nothing is left" {
	start_proxy
	for verb in rlock wlock; do
		proxy drop-reply "$RELEASE"
		runs_once "$verb"
		proxy drop-reply "$RELEASE" 3
		runs_once "$verb"
		proxy cut-before "$RELEASE"
		runs_once "$verb"
	done
}

@test "no reply to the acquire of a read or write lock comes in time: nothing is left after the lease" {
	start_proxy
	for verb in rlock wlock; do
		proxy drop-reply "$ACQUIRE" 1000
		run -69 rlock "$verb" -w 300ms -t 1s a -- touch ran
		assert_one_line '^rlock: a: '
		refute file_exists ran
		wait_until 2 no_keys
		proxy pass
	done
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

@test "replies are lost when a writer re-enters, as a writer and as a reader: each hold is counted a single time" {
	start_proxy
	run -0 rlock wlock a -- sh -c '
		for verb in wlock rlock; do
			faultproxy -c "unix:$BATS_TEST_TMPDIR/control" drop-reply "rlock_writer:{a}" 2 >/dev/null
			faultproxy -c "unix:$BATS_TEST_TMPDIR/control" drop-reply "redisson_rwlock:{a}!rlock_writer:{a}" 2 >/dev/null
			rlock $verb a -- $REDIS hvals a
			$REDIS hvals a
		done
	'
	assert_output $'write\n2\nwrite\n1\nwrite\n1\n1\nwrite\n1'
	faults_happened
	no_keys
}

@test "the reply that would have let a waiting reader or writer in is lost: the command runs once" {
	start_proxy
	local verb
	for verb in rlock wlock; do
		admit_guest w wlock a
		in_background sh -c 'exec "$@" 2>said' sh rlock "$verb" a -- \
			sh -c 'echo >>ran; $REDIS hvals a | tail -n 1 >counts'
		wait_until 5 has_listeners
		proxy drop-reply "$ACQUIRE"
		let_guest_out w
		took_less 5 ended_with 0
		faults_happened
		has_lines ran 1
		assert_equal "$(cat counts)" 1
		assert_equal "$(cat said)" ''
		wait_until 2 no_keys
		rm -f ran in-w out-w
	done
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

# renewal_survives FAULT [N]: with that fault for renewals read and write lock stay held, by one hold.
renewal_survives() {
	local verb
	start_proxy
	for verb in rlock wlock; do
		admit_guest "$verb" "$verb" a -t 2s
		proxy "$1" "$RENEW" "${@:2}"
		wait_until 5 faults_happened
		wait_until 5 is_renewed a 2000
		assert_equal "$(redis hvals a | tail -n 1)" 1
		let_guest_out "$verb"
		ended_with 0
		assert_equal "$(cat "said-$verb")" ''
		no_keys
	done
}

@test "replies to renewals of a read or write lock are lost: it stays held, by one hold" {
	renewal_survives drop-reply 2
}

@test "renewals of a read or write lock do not reach the server: it stays held" {
	renewal_survives cut-before
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

@test "a server that loses its scripts releases, renews and lets wait all the same" {
	admit_guest r rlock a -t 3s
	queue_guest w wlock a -v
	for _ in 1 2 3; do
		redis script flush >/dev/null
		stays 1.1 is_held a
	done
	let_guest_out r
	enters_woken w
	redis script flush >/dev/null
	let_guest_out w
	ended_with 0
	no_keys
}
