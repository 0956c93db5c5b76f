#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that all must agree, when one of them is not there, is frozen, is killed or comes back: nothing
# is acquired, the lock is lost, or its release is late.

# Each test is a subshell, and knows that; end is agreeing.bash's, VIA is servers.bash's.
# shellcheck disable=SC2030,SC2031,SC2034,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/agreeing

setup_file() { start_warm_servers 9; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- to acquire ----

@test "one server that is not there: 69 at once, in one line, and nothing is left on the others" {
	local verb
	VIA[2]=unix://$PWD/nobody.sock
	use_servers 1 2 3
	SERVERS=(1 3)
	for verb in run fair rlock wlock; do
		took_less 2 run -69 rlock $verb a -- touch ran
		assert_one_line '^rlock: a: .*2 of 3 servers .*nobody.sock'
		on_each no_keys
		took_less 2 run -69 rlock $verb -n a b -- touch ran
		on_each no_keys
	done
	[ ! -e ran ]
}

@test "one server that comes up within the wait time is used" {
	take_servers 3
	crash_server "${SERVERS[1]}"
	in_background rlock run -w 10s a -- touch ran
	let_pass 0.3
	is_running "$PID"
	revive_server "${SERVERS[1]}"
	took_less 3 ended_with 0
	[ -e ran ]
	on_each no_keys
}

@test "one frozen server: 69 at --connect-timeout, and nothing is left on any" {
	freeze_server 2
	took_less 1.5 run -69 rlock run --connect-timeout 500ms a -- touch ran
	assert_one_line '^rlock: a: .*2 of 3 servers'
	on 1 no_keys
	on 3 no_keys
	thaw_server 2
	wait_until 2 on_each no_keys
	[ ! -e ran ]
}

@test "one frozen server is waited for, and the lock is acquired when it goes on" {
	freeze_server 2
	in_background rlock run -w 10s --connect-timeout 500ms a -- touch ran
	let_pass 1.2
	is_running "$PID"
	thaw_server 2
	took_less 4 ended_with 0
	[ -e ran ]
	wait_until 2 on_each no_keys
}

# ---- while it is held ----

@test "one of the servers is killed: the command is stopped before the lease ends, 76" {
	take_servers 3
	hold_with_family a -t 5s
	wait_until 6 on_each is_renewed a 5000
	before_renewal "$PID" at_known_end crash_server "${SERVERS[1]}"
	watch_family 8
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+m?s: .+: terminating the command: before you run it again, look at what is half done$'
	wait_until 2 on "${SERVERS[0]}" no_keys
	wait_until 2 on "${SERVERS[2]}" no_keys
}

@test "one of the servers is frozen: the command is stopped before the lease ends, 76" {
	hold_with_family a -t 5s
	wait_until 6 on_each is_renewed a 5000
	before_renewal "$PID" at_known_end freeze_server 2
	watch_family 8
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at '
	thaw_server 2
	wait_until 2 on_each no_keys
}

@test "a lock is held on while one of the servers is frozen over a renewal, but not for long" {
	hold_on_each a -t 9s
	wait_until 8 on_each is_renewed a 9000
	freeze_server 3
	let_pass 3.4
	thaw_server 3
	wait_until 10 on_each is_renewed a 7500
	let_go
	ended_with 0
	said_nothing
	on_each no_keys
}

@test "a lock that is deleted on one of the servers is lost: the command is stopped, 76" {
	hold_with_family a -t 1s
	wait_until 5 on_each is_held a
	on 3 redis del a
	took_less 5 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	# What the others have of it ends with its lease.
	wait_until 2 on_each no_keys
}

# ---- to release ----

@test "a release that one frozen server does not answer: a warning within 8 s, and the command's status" {
	listen_to rlock run a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	freeze_server 2
	let_go
	took_less 6.5 ended_with 7
	said_once '^rlock: a: release failed: '
	on 1 no_keys
	on 3 no_keys
	thaw_server 2
	wait_until 2 on_each no_keys
}

@test "a release that a slow server carries out while another one is not there is no loss" {
	start_proxy_to 1
	start_proxy_to 2
	proxy_to 2 delay 150
	listen_to rlock run a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	proxy_to 1 refuse on
	proxy_to 1 cut
	let_go
	wait_until 5 on 2 is_free a
	let_pass 0.4
	proxy_to 1 refuse off
	took_less 5 ended_with 7
	said_nothing
	on_each no_keys
}
