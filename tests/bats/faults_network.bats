#!/usr/bin/env bats
# bats file_tags=long
# A network that cuts, delays and spoils what passes; and how many round trips there are on one that does not. Single replies
# that get lost are in faults_replies.bats.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

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

# ---- a bad line ----

@test "a lock is held on when all connections are cut" {
	start_prompt_proxy
	hold_and_listen a -t 3s
	for _ in 1 2 3; do
		proxy cut
		stays 1.2 is_held a
	done
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "a holder in a black hole: the command is stopped before the lease ends" {
	start_prompt_proxy
	hold_with_family a -t 3s
	wait_until 5 is_renewed a 3000
	proxy blackhole on
	end=$(lease_end_ms a)
	watch_family 7
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at '
	wait_until 4 no_keys
}

@test "a holder whose replies vanish, while its renewals arrive: stopped, and the lock is released" {
	start_prompt_proxy
	hold_and_listen a -t 1s
	proxy blackhole on down
	ended_with 76
	said_once '^rlock: a: lock lost at '
	is_free_after_lease a 1000
}

@test "a waiter in a black hole: its time runs out, 69" {
	# At its end the waiter asks the server again.
	hold_in_background a -t 3s
	start_prompt_proxy
	wait_for_lock a -w 5s
	proxy blackhole on
	took_less 8 ended_with 69
	said_once '^rlock: a: '
	[ ! -e ran ]
}

@test "a waiter that was in a black hole gets the lock behind it" {
	hold_in_background a
	holder=$PID
	start_prompt_proxy
	wait_for_lock a
	proxy blackhole on
	let_go
	ended_with 0 "$holder"
	let_pass 0.5
	proxy blackhole off
	proxy cut
	took_less 5 ended_with 0
	[ -e ran ]
	wait_until 2 no_keys
}

@test "a connection that the server does not answer ends at --connect-timeout" {
	start_prompt_proxy
	proxy blackhole on
	took_less 4 run -69 rlock run --connect-timeout 500ms a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

@test "replies that take a second: slow, but all is as ever" {
	start_prompt_proxy
	proxy delay 1000
	run_counted -t 10s
}

@test "replies that take half of the lease: 69, and that the lease is too short" {
	start_prompt_proxy
	proxy delay 500
	run -69 rlock run -n -t 1s a -- touch ran
	assert_output --partial 'answers too slowly for this lease: give a longer one'
	[ ! -e ran ]
	wait_until 2 no_keys
}

@test "replies that take longer than the lease: the command does not run, and nothing is left" {
	start_prompt_proxy
	proxy delay 1100
	run rlock run -t 1s -w 2s a -- touch ran
	assert_between 1 "$status" 127
	[ ! -e ran ]
	wait_until 2 no_keys
}

@test "replies that come a byte at a time: all is as ever" {
	start_prompt_proxy
	proxy trickle on
	run_counted
}

@test "garbage instead of the reply to the acquire: nothing is left after the lease" {
	start_prompt_proxy
	proxy garbage "$ACQUIRE" 1000
	run rlock run -t 1s -w 300ms a -- touch ran
	assert_between 1 "$status" 127
	[ "${#lines[@]}" -eq 1 ]
	assert_output --regexp '^rlock: a: '
	[ ! -e ran ]
	proxy pass
	is_free_after_lease a 1000
}

@test "garbage instead of the reply to the release: the command's status stands" {
	start_prompt_proxy
	proxy garbage "$RELEASE" 1000
	run -7 rlock run -t 1s a -- sh -c 'exit 7'
	[ "${#lines[@]}" -eq 1 ] || fail "$output"
	proxy pass
	is_free_after_lease a 1000
}

@test "garbage instead of the reply to a renewal: the lock stays held" {
	renewal_survives garbage "$RENEW"
}

@test "garbage instead of every reply to a renewal: the command is stopped before the lease ends" {
	start_prompt_proxy
	hold_with_family a -t 5s
	wait_until 5 is_renewed a 5000
	proxy garbage "$RENEW" 100000
	end=$(lease_end_ms a)
	watch_family 8
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at '
}

@test "something that is no Redis at all: one clear line, and no lock" {
	start_prompt_proxy
	proxy garbage '*' 1000
	run rlock run a -- touch ran
	assert_between 1 "$status" 127
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

# ---- round trips ----

# proxy_counts WHAT: connections, requests, replies, dropped or writes_up.
proxy_counts() {
	proxy count | tr ' ' '\n' | sed -n "s/^$1=//p"
}

@test "an undisturbed run makes two round trips" {
	start_prompt_proxy
	run -0 rlock run a -- true
	[ "$(proxy_counts writes_up)" = 2 ]
	[ "$(proxy_counts connections)" = 1 ]
}

@test "an undisturbed run with user, password and database makes two round trips" {
	own_server
	rlock run -u "unix://$SERVER_SOCKET?db=2" warm -- true
	redis acl setuser somebody on '>secret' '~*' '&*' +@all
	start_prompt_proxy tcp:127.0.0.1:0
	run -0 rlock run -u "redis://somebody:secret@127.0.0.1:$PROXY_PORT/2" --note there a -- \
		redis-cli -s "$SERVER_SOCKET" -n 2 exists a
	assert_output 1
	[ "$(proxy_counts writes_up)" = 2 ]
	[ "$(proxy_counts connections)" = 1 ]
}

@test "an undisturbed run with the default user's password makes two round trips" {
	own_server
	rlock run warm -- true
	redis config set requirepass secret
	start_prompt_proxy tcp:127.0.0.1:0
	REDISCLI_AUTH=secret run -0 rlock run -u "redis://127.0.0.1:$PROXY_PORT" a -- true
	[ "$(proxy_counts writes_up)" = 2 ]
}
