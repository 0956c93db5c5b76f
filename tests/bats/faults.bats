#!/usr/bin/env bats
# bats file_tags=long
# A server that is frozen, or gone, and back; and locks that get lost. What a server refuses is in faults_refused.bats, what the
# network does in faults_network.bats.

# knowing_end sets end.
# shellcheck disable=SC2154

load ../lib/usual
load ../lib/own_servers
load ../lib/proxying
load ../lib/faults

setup_file() { start_warm_server run; }

teardown() { common_teardown; }

freeze() {
	kill -s STOP "$SERVER_PID"
}

unfreeze() {
	kill -s CONT "$SERVER_PID"
}

# ---- frozen ----

@test "a frozen server: all of the command's processes are gone before the lease ends" {
	hold_with_family a -t 5s
	wait_until 6 is_renewed a 5000
	before_renewal "$PID" knowing_end freeze
	watch_family 12
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	unfreeze
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[-+][0-9]{2}:[0-9]{2}: not renewed for [0-9.]+m?s: .+: terminating the command: before you run it again, look at what is half done$'
	wait_until 5 no_keys
	nothing_runs
}

@test "a lock is held on while its server is frozen over a renewal, but not for long" {
	hold_and_listen a -t 6s
	wait_until 8 is_renewed a 6000
	freeze
	let_pass 2.4
	unfreeze
	wait_until 8 is_renewed a 6000
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a release that cannot be delivered is a warning, and the command's status stands" {
	own_server
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 6s a -- sh -c 'until_let_go; exit 7'
	wait_until 5 is_held a
	freeze
	let_go
	took_less 9 ended_with 7
	said_once '^rlock: a: release failed: '
	unfreeze
	wait_until 8 no_keys
}

@test "a waiter's time runs out though the server is frozen: 69" {
	own_server
	# At its end the waiter asks the server again.
	hold_in_background a -t 3s
	wait_for_lock a -w 5s
	freeze
	took_less 12 ended_with 69
	said_once '^rlock: a: '
	[ ! -e ran ]
}

# ---- gone, and back ----

@test "a server that comes back empty: the lock is lost, the command stopped" {
	own_server
	hold_with_family a -t 1s
	kill_server
	own_server
	took_less 10 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	no_keys
}

@test "a waiter survives a restart of its server, and gets the lock" {
	own_server
	hold_in_background a -t 30s
	wait_for_lock a
	kill_server
	let_pass 0.5
	is_running "$PID"
	own_server
	wait_until 5 file_exists ran
	ended_with 0
}

@test "a lock without a command that was renewed is released after an outage that its first lease does not outlast" {
	start_prompt_proxy
	in_background bash -c 'rlock lock -l 9s --pid $$ a && touch had; until_let_go'
	wait_until 5 file_exists had
	wait_until 9 ttl_is_below a 3000
	rlock renew --pid "$PID" a
	wait_until 5 ttl_is_below a 7000
	proxy refuse on
	proxy cut
	let_go
	wait "$PID" || :
	let_pass 1.5
	proxy refuse off
	# By itself it would be more than 5 s later.
	wait_until 5 is_free a
}

@test "a server that is down at the start: 69 at once, or when the wait time that was given is over" {
	local start took
	took_less 4 run -69 rlock run -u redis://127.0.0.1:1 a -- touch ran
	assert_output --partial '127.0.0.1:1'
	[ "${#lines[@]}" -eq 1 ]
	start=$(now_ms)
	run -69 rlock run -w 1s -u "unix://$BATS_TEST_TMPDIR/nobody.sock" a -- touch ran
	took=$(($(now_ms) - start))
	((took >= 900 && took < 10000)) || fail "took $took ms"
	assert_output --partial "$BATS_TEST_TMPDIR/nobody.sock"
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

@test "a server that comes up within the wait time is used" {
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/server/redis.sock
	in_background rlock run -w 10s a -- touch ran
	let_pass 0.3
	is_running "$PID"
	own_server
	took_less 15 ended_with 0
	[ -e ran ]
	no_keys
}

# ---- lost ----

@test "a lock that was deleted on the server: the command is stopped within a third of the lease, 76" {
	hold_with_family a -t 6s
	wait_until 5 is_renewed a 6000
	before_renewal "$PID" knowing_end redis del a
	within 5 is_gone "$(family_member leader)"
	watch_family 7
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at .*: terminating the command: before you run it again, look at what is half done$'
	# What lists the holds has the same time to live as the lock had.
	wait_until 8 no_keys
}

@test "a lock that another owner acquired meanwhile, for more or less time than ours, is not touched" {
	local ms
	for ms in 60000 5000; do
		hold_and_listen a -t 6s
		redis del a
		redis hset a somebody 1
		redis pexpire a $ms
		ended_with 76
		said_once '^rlock: a: lock lost at '
		[ "$(redis pttl a)" -le "$ms" ]
		# The shorter one may be over by now.
		[ "$ms" = 5000 ] || assert_equal "$(redis hgetall a)" $'somebody\n1'
		redis del a
	done
}

@test "a lock that was lost just before the command ended: 76" {
	hold_and_listen a
	redis del a
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost before the command ended'
}

# lose_while_logging ARG...: the lock is lost while the command notes what signals it gets, and that is said.
lose_while_logging() {
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 3s "$@" a -- log_signals
	wait_until 5 file_says signals ready
	redis del a
	wait_until 10 said_once '^rlock: a: lock lost at '
}

@test "with --on-lost term the command gets SIGTERM, or what --signal says, and nothing worse" {
	lose_while_logging --on-lost term --grace 100ms
	wait_until 6 file_says signals TERM
	stays 1 is_running "$PID"
	let_go
	ended_with 76
	[ "$(grep -c TERM signals)" = 1 ]
	rm signals let-go
	lose_while_logging --on-lost term --signal USR1
	wait_until 6 file_says signals USR1
	said_once '^rlock: a: lock lost at .*: the command was sent SIGUSR1: '
	let_go
	ended_with 76
	refute grep -q TERM signals
}

@test "with --on-lost ignore the command runs on, and 76 says that the lock was lost, whether --quiet or not" {
	lose_while_logging --on-lost ignore -q
	stays 1 is_running "$PID"
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost at '
	has_lines signals 1
}
