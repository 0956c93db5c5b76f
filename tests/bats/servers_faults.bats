#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that all must agree, when one of them is not there, is frozen, is killed or refuses, when replies get
# lost, or rlock is killed: nothing is acquired, the lock is lost, or its release is late.

# end and runs_once are agreeing.bash's, VIA is servers.bash's.
# shellcheck disable=SC2034,SC2154

load ../lib/usual
load ../lib/proxying
load ../lib/agreeing

setup_file() { start_warm_servers 12; }

# ---- to acquire ----

@test "one server that is not there: 69 at once, in one line, and nothing is left on the others" {
	VIA[2]=unix://$PWD/nobody.sock
	use_servers 1 2 3
	SERVERS=(1 3)
	took_less 10 run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*2 of 3 servers .*nobody.sock'
	on_each no_keys
	took_less 10 run -69 rlock fair -n a b -- touch ran
	on_each no_keys
	[ ! -e ran ]
}

@test "one frozen server: 69 at --connect-timeout, and within a wait time the lock is acquired when it goes on" {
	freeze_server 2
	run -69 rlock run --connect-timeout 500ms a -- touch ran
	assert_one_line '^rlock: a: .*2 of 3 servers'
	nothing_but 2
	[ ! -e ran ]
	in_background rlock run -w 20s --connect-timeout 500ms a -- touch ran
	stays 1.2 is_running "$PID"
	thaw_server 2
	ended_with 0
	[ -e ran ]
	wait_until 5 on_each no_keys
}

@test "one server that wants another password: 77 in one line, and nothing is left on the others" {
	take_servers 3
	on "${SERVERS[1]}" redis config set requirepass s3cr3t
	run -77 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*password'
	nothing_but "${SERVERS[1]}"
	REDISCLI_AUTH=wr0ng run -77 rlock run -w 1s a -- touch ran
	assert_one_line '^rlock: a: '
	refute_output --partial wr0ng
	nothing_but "${SERVERS[1]}"
	[ ! -e ran ]
}

@test "one server that is full, or a replica: 69 in one line, and nothing is left on the others" {
	take_servers 3
	on "${SERVERS[1]}" redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*memory'
	on_each no_keys
	on "${SERVERS[1]}" redis config set maxmemory 0
	on "${SERVERS[2]}" redis replicaof 127.0.0.1 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: '
	on "${SERVERS[0]}" no_keys
	on "${SERVERS[1]}" no_keys
	[ ! -e ran ]
}

# ---- replies that get lost ----

# run_counted [OPTION...]: that command under the lock "a"; it has to run once, with one hold on each, and
# nothing may be left.
run_counted() {
	run -7 --separate-stderr rlock run "$@" a -- sh -c "$runs_once"
	assert_output $'1\n1\n1'
	# shellcheck disable=SC2154 # run sets it
	assert_equal "$stderr" ''
	has_lines ran 1
	on_each no_keys
}

faults_happened_at() {
	proxy_to "$1" state | grep -q 'rules=0'
}

@test "replies to the acquire of two servers are lost: the command runs once, and nothing is left" {
	start_proxy_to 1
	start_proxy_to 3
	proxy_to 1 drop-reply "$ACQUIRE"
	proxy_to 3 drop-reply "$ACQUIRE" 3
	run_counted -w 10s
	faults_happened_at 1
	faults_happened_at 3
}

@test "one server's replies to the acquire are all lost: 69, and nothing is left on any" {
	start_proxy_to 2
	proxy_to 2 drop-reply "$ACQUIRE" 1000
	run -69 rlock run -w 300ms -t 1s a -- touch ran
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on 1 no_keys
	on 3 no_keys
	wait_until 5 on_each no_keys
}

# ---- while it is held ----

@test "one of the servers is killed: the command is stopped before the lease ends, 76" {
	take_servers 3
	hold_with_family a -t 6s
	wait_until 6 on_each is_renewed a 6000
	before_renewal "$PID" at_known_end crash_server "${SERVERS[1]}"
	watch_family 12
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+m?s: .+: terminating the command: before you run it again, look at what is half done$'
	wait_until 5 on "${SERVERS[0]}" no_keys
	wait_until 5 on "${SERVERS[2]}" no_keys
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
	took_less 10 ended_with 76
	family_is_gone
	said_once '^rlock: a: lock lost at '
	# What the others have of it ends with its lease.
	wait_until 5 on_each no_keys
}

@test "with rlock killed the lock is held on all servers until the command has ended, and released on all" {
	local child
	hold_on_each a -t 2s
	wait_until 5 has_command "$PID"
	child=$(command_of "$PID")
	BACKGROUND+=("$child")
	kill -s KILL "$PID"
	stays 2.5 on_each is_held a
	is_running "$child"
	let_go
	wait_until 5 on_each no_keys
	wait_until 5 nothing_runs
}

# ---- to release ----

@test "a release that one frozen server does not answer: a warning, and the command's status" {
	listen_to rlock run a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	freeze_server 2
	let_go
	took_less 12 ended_with 7
	said_once '^rlock: a: release failed: '
	on 1 no_keys
	on 3 no_keys
	thaw_server 2
	wait_until 5 on_each no_keys
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
	took_less 10 ended_with 7
	said_nothing
	on_each no_keys
}
