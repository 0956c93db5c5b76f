#!/usr/bin/env bats
# bats file_tags=long
# A server that is frozen, or gone, and back; and locks that get lost. What a server refuses is in faults_refused.bats, what the
# network does in faults_replies.bats and faults_network.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that; knowing_end sets end.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/own_servers
load ../lib/proxying
load ../lib/faults

setup_file() { start_warm_server run; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

freeze() {
	kill -s STOP "$SERVER_PID"
}

unfreeze() {
	kill -s CONT "$SERVER_PID"
}

# ---- frozen ----

@test "a frozen server: all of the command's processes are gone before the lease ends" {
	hold_with_family a -t 3s
	wait_until 5 is_renewed a 3000
	before_renewal "$PID" knowing_end freeze
	watch_family 6
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	unfreeze
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[-+][0-9]{2}:[0-9]{2}: not renewed for [0-9.]+m?s: .+: terminating the command: before you run it again, look at what is half done$'
	wait_until 3 no_keys
	nothing_runs
}

@test "a server that stays frozen: rlock ends all the same, with 76" {
	own_server
	hold_and_listen a -t 1s
	freeze
	ended_with 76
	said_once '^rlock: a: lock lost at '
	nothing_runs
}

@test "a lock is held on while its server is frozen for less than a third of the lease" {
	hold_and_listen a -t 9s
	freeze
	let_pass 2
	unfreeze
	wait_until 8 is_renewed a 9000
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a lock is held on while its server is frozen over a renewal, but not for long" {
	hold_and_listen a -t 9s
	wait_until 8 is_renewed a 9000
	freeze
	let_pass 3.5
	unfreeze
	wait_until 8 is_renewed a 9000
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

@test "a waiter whose server is frozen goes on when it thaws" {
	hold_in_background a -t 3s
	holder=$PID
	wait_for_lock a
	freeze
	let_pass 0.9
	unfreeze
	let_go
	ended_with 0
	ended_with 0 "$holder"
	[ -e ran ]
}

@test "a waiter's time runs out though the server is frozen: 69" {
	own_server
	# At its end the waiter asks the server again.
	hold_in_background a -t 3s
	wait_for_lock a -w 5s
	freeze
	took_less 8 ended_with 69
	said_once '^rlock: a: '
	[ ! -e ran ]
}

# ---- gone, and back ----

@test "a server that comes back empty: the lock is lost, the command stopped" {
	own_server
	hold_with_family a -t 1s
	kill_server
	own_server
	took_less 3 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	no_keys
}

@test "a lock is held on when its server comes back with what it knew" {
	own_server
	hold_and_listen a -t 9s
	redis save
	kill_server
	own_server
	is_held a
	wait_until 8 is_renewed a 9000
	let_go
	ended_with 0
	said_nothing
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
	wait_until 4 is_free a
}

@test "a waiter whose server does not come back ends with 69 when its time is over" {
	own_server
	hold_in_background a
	wait_for_lock a -w 8s
	kill_server
	took_less 11 ended_with 69
	said_once '^rlock: '
}

@test "a server that is down at the start: 69 at once" {
	RLOCK_URL=unix://$BATS_TEST_TMPDIR/nobody.sock
	took_less 4 run -69 rlock run a -- touch ran
	assert_output --partial "$BATS_TEST_TMPDIR/nobody.sock"
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

@test "a port where no server listens: 69 at once" {
	took_less 4 run -69 rlock run -u redis://127.0.0.1:1 a -- touch ran
	assert_output --partial '127.0.0.1:1'
	[ "${#lines[@]}" -eq 1 ]
}

@test "a server that is down at the start is tried again for the wait time that was given" {
	RLOCK_URL=unix://$BATS_TEST_TMPDIR/nobody.sock
	start=$(now_ms)
	run -69 rlock run -w 1s a -- touch ran
	took=$(($(now_ms) - start))
	((took >= 900 && took < 5000)) || fail "took $took ms"
	[ "${#lines[@]}" -eq 1 ]
}

@test "a server that comes up within the wait time is used" {
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/server/redis.sock
	in_background rlock run -w 10s a -- touch ran
	let_pass 0.3
	is_running "$PID"
	own_server
	took_less 8 ended_with 0
	[ -e ran ]
	no_keys
}

# ---- lost ----

@test "a lock that was deleted on the server: the command is stopped within a third of the lease, 76" {
	hold_with_family a -t 6s
	wait_until 5 is_renewed a 6000
	before_renewal "$PID" knowing_end redis del a
	within 3.8 is_gone "$(family_member leader)"
	watch_family 7
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at .*: terminating the command: before you run it again, look at what is half done$'
	# What lists the holds has the same time to live as the lock had.
	wait_until 8 no_keys
}

@test "a lock that another owner acquired meanwhile is not touched" {
	hold_and_listen a -t 1s
	redis del a
	redis hset a somebody 1
	redis pexpire a 60000
	ended_with 76
	said_once '^rlock: a: lock lost at '
	run -0 redis hgetall a
	assert_output $'somebody\n1'
	[ "$(redis pttl a)" -gt 50000 ]
}

@test "a lock that another owner acquired meanwhile for less time than ours is not renewed" {
	hold_and_listen a -t 6s
	redis del a
	redis hset a somebody 1
	redis pexpire a 5000
	ended_with 76
	said_once '^rlock: a: lock lost at '
	[ "$(redis pttl a)" -le 5000 ]
}

@test "a lock that was lost just before the command ended: 76" {
	hold_and_listen a
	redis del a
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost before the command ended'
}

@test "with --on-lost term the command gets SIGTERM, and nothing worse" {
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 3s --on-lost term --grace 100ms a -- log_signals
	wait_until 5 file_says signals ready
	redis del a
	wait_until 6 file_says signals TERM
	stays 3.5 is_running "$PID"
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost at '
	[ "$(grep -c TERM signals)" = 1 ]
}

@test "with --signal a lost lock sends that signal, and the message names it" {
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 3s --on-lost term --signal USR1 a -- log_signals
	wait_until 5 file_says signals ready
	redis del a
	wait_until 6 file_says signals USR1
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost at .*: the command was sent SIGUSR1: '
	refute grep -q TERM signals
}

@test "with --on-lost ignore the command runs on, and 76 says that the lock was lost" {
	in_background sh -c 'exec "$@" 2>said' sh rlock run -t 3s --on-lost ignore a -- log_signals
	wait_until 5 file_says signals ready
	redis del a
	stays 3.5 is_running "$PID"
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost at '
	has_lines signals 1
}

@test "--quiet does not silence a lost lock" {
	hold_and_listen a -q -t 1s
	redis del a
	ended_with 76
	said_once '^rlock: a: lock lost at '
}
