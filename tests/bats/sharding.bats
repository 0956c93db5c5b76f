#!/usr/bin/env bats
# A proxy that distributes keys over several servers by the first key of a command: it runs the script for several names on one server,
# while other clients look for the other names on theirs.

load ../lib/usual
load ../lib/own_servers
load ../lib/proxying

setup_file() { start_server_at_port; }

# The proxy selects a server by CRC-32: "a" and "c" are on the second one, "d" on the first.
setup() {
	directory_setup
	start_second_server
	in_background sharding "$BATS_TEST_TMPDIR/proxy.sock" "$SERVER_SOCKET" "$OTHER"
	wait_until 10 file_exists "$BATS_TEST_TMPDIR/proxy.sock"
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/proxy.sock
}

teardown() { common_teardown; }

@test "several names on different servers of a proxy are refused by verbs of any kind; names on one server are acquired" {
	local verb
	for verb in run read; do
		run -78 rlock "$verb" a d -- touch ran
		assert_output --regexp '^rlock: a: the names are on different servers, as a proxy keeps them; '
		wait_until 5 no_keys
		wait_until 5 eval '[ "$(ask_redis "$OTHER" dbsize)" = 0 ]'
	done
	run -78 rlock sem --permits 2 a d -- touch ran
	# The permits must have been returned on the server that has counted them.
	wait_until 5 eval '[ "$(ask_redis "$OTHER" mget a d | xargs)" = "2 2" ]'
	wait_until 5 no_keys
	assert [ ! -e ran ]
	ask_redis "$OTHER" flushall
	run -0 rlock run a c -- sh -c 'ask_redis "$OTHER" exists a c'
	assert_output 2
	run -0 rlock run d -- sh -c 'ask_redis "$SERVER_SOCKET" exists d'
	assert_output 1
	no_keys
}

# counts REGEXP COMMAND...: whether the proxy counts this for COMMAND.
counts() {
	proxy reset-count >/dev/null
	"${@:2}" && [[ $(proxy count) =~ $1 ]]
}

# Try again: on a busy machine a request can be repeated, as its reply is late.
@test "the check for such a proxy adds no write for several names, and no request for one name" {
	export RLOCK_URL=unix://$SERVER_SOCKET
	rlock run a -- true
	start_proxy
	wait_until 10 counts ' requests=3 .* writes_up=2 ' rlock run a -- true
	wait_until 10 counts ' requests=5 .* writes_up=2 ' rlock run a c -- true
}

@test "check calls locks behind a proxy for several servers unsound, and does not mention sharding for one server" {
	run -78 rlock check
	assert_line --regexp '^BAD +sharding +a proxy that keeps keys on several servers, and runs a script on one of them; '
	assert_line --regexp '^NOT SOUND: .* see .*sharding'
	run rlock check -u "unix://$SERVER_SOCKET"
	refute_output --partial sharding
}

@test "a waiter retries within a second on a server without SUBSCRIBE, which -v reports once" {
	local words
	for words in run read 'sem --permits 1'; do
		rm -f end-commands ran stderr
		# shellcheck disable=SC2086
		in_background rlock ${words/read/write} d -- run_until_ended
		wait_until 5 has_child "$PID" run_until_ended
		# shellcheck disable=SC2086
		record_stderr rlock $words -v -w 60s d -- touch ran
		wait_until 10 eval '[ "$(grep -c "asking to acquire" stderr)" -ge 3 ]'
		assert [ ! -e ran ]
		end_commands
		ended_with 0
		assert [ -e ran ]
		assert_equal "$(grep -c SUBSCRIBE stderr)" 1
		assert grep -q "it denies SUBSCRIBE: waiters poll at least once a second: ERR unknown command 'SUBSCRIBE'$" stderr
	done
}
