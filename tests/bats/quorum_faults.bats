#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers of which some need not agree, when rlock or its renewer is killed, replies get lost, or some of
# the servers refuse.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/agreeing
load ../lib/quorum

setup_file() { start_old_servers 12; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- rlock, the renewer ----

@test "with rlock killed the lock is held on a majority until the command has ended, with one server gone" {
	local child
	is_nowhere 2
	hold_without 2 a -t 3s
	wait_until 5 has_command "$PID"
	child=$(command_of "$PID")
	BACKGROUND+=("$child")
	kill -s KILL "$PID"
	stays 3.5 on 3 is_held a
	on 1 is_held a
	run -75 rlock run -n -t 1s a -- true
	is_running "$child"
	let_go
	wait_until 2 nothing_but 2
	wait_until 2 nothing_runs
}

@test "with the renewer killed rlock takes over, with one server frozen" {
	local renewer
	hold_on_each a -t 3s
	wait_until 5 has_renewer "$PID"
	freeze_server 1
	renewer=$(renewer_of "$PID")
	kill -s KILL "$renewer"
	stays 3.5 on 2 is_held a
	on 3 is_held a
	let_go
	ended_with 0
	said_nothing
	thaw_server 1
	wait_until 2 on_each no_keys
}

# ---- replies that get lost, servers that refuse ----

@test "one server's replies are lost, or garbage: the lock is acquired, once, and nothing is left" {
	local fault
	start_proxy_to 2
	for fault in 'drop-reply ACQUIRE' 'drop-reply RELEASE' 'cut-before ACQUIRE' 'cut-before RELEASE' \
		'hold-reply ACQUIRE' 'garbage ACQUIRE' 'garbage RELEASE' 'drop-reply *'; do
		case $fault in
		*ACQUIRE) proxy_to 2 "${fault% *}" "$ACQUIRE" 1000 ;;
		*RELEASE) proxy_to 2 "${fault% *}" "$RELEASE" 1000 ;;
		*) proxy_to 2 "${fault% *}" '*' 1000 ;;
		esac
		run -7 rlock run -n -t 3s a -- sh -c 'ask_redis "$SERVER_SOCKET" hvals a; exit 7'
		assert_output 1
		nothing_but 2
		proxy_to 2 pass
		wait_until 8 on_each no_keys
	done
}

@test "a lock is held on while one server's replies are lost" {
	start_proxy_to 2
	hold_on_each a -t 3s
	proxy_to 2 blackhole on down
	stays 3.5 on 1 is_held a
	proxy_to 2 pass
	proxy_to 2 cut
	wait_until 2 on 2 is_renewed a 3000
	assert_equal "$(on 2 redis hvals a)" 1
	let_go
	ended_with 0
	said_nothing
	wait_until 2 on_each no_keys
}

@test "one server that wants another password is done without, two of them are refused with 77" {
	take_servers 3
	on "${SERVERS[1]}" redis config set requirepass s3cr3t
	run -0 rlock run -t 3s a -- sleep 3.2
	assert_output ''
	run -0 rlock run -n a -- true
	assert_output ''
	REDISCLI_AUTH=s3cr3t on_each no_keys 2>/dev/null
	on "${SERVERS[0]}" redis config set requirepass s3cr3t
	run -77 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*password'
	[ ! -e ran ]
	on "${SERVERS[2]}" no_keys
	REDISCLI_AUTH=s3cr3t on "${SERVERS[0]}" no_keys
	REDISCLI_AUTH=s3cr3t on "${SERVERS[1]}" no_keys
}

@test "one server where the user lacks a right is done without, two are refused with 77" {
	take_servers 3
	on "${SERVERS[2]}" redis acl setuser default -hset >/dev/null
	run -0 rlock run -n a -- true
	assert_output ''
	on_each no_keys
	on "${SERVERS[0]}" redis acl setuser default -info >/dev/null
	run -77 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*\+(hset|info)'
	[ ! -e ran ]
	on_each no_keys
}

@test "one server with a key of another kind is done without and left alone, two are refused with 78" {
	on 1 redis set a value
	run -0 rlock run a -- true
	assert_output ''
	nothing_but 1
	on 2 redis hset a mode read somebody 1
	run -78 rlock run -w 1s a -- touch ran
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on 3 no_keys
	assert_equal "$(on 1 redis get a)" value
	assert_equal "$(on 2 redis hget a somebody)" 1
}

@test "one server that is full, and one that is a replica, are done without each" {
	take_servers 3
	on "${SERVERS[0]}" redis config set maxmemory 1
	run -0 rlock run a -- true
	assert_output ''
	on_each no_keys
	on "${SERVERS[0]}" redis config set maxmemory 0
	on "${SERVERS[2]}" redis replicaof 127.0.0.1 1
	run -0 rlock run a -- true
	assert_output ''
	on "${SERVERS[0]}" redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on "${SERVERS[1]}" no_keys
}
