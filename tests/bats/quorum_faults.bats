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

setup_file() { start_old_servers 6; }
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
