#!/usr/bin/env bats
# bats file_tags=long
# A network that cuts, delays and spoils what passes, and loses requests and replies: what was sent again counts a single time, and
# nothing is left; and how many round trips there are on one that does not. Each request of each command, with each of these faults,
# is tried by tests/chaos/network.bats.

load ../lib/usual
load ../lib/own_servers
load ../lib/proxying
load ../lib/faults

setup_file() { start_warm_server run; }

teardown() { common_teardown; }

# ---- a bad line ----

@test "a lock is held on when all connections are cut" {
	start_prompt_proxy
	hold_and_listen a -t 2s
	for _ in 1 2; do
		proxy cut
		stays 1 is_held a
	done
	let_go
	ended_with 0
	said_nothing
	no_keys
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
	took_less 15 ended_with 0
	[ -e ran ]
	wait_until 5 no_keys
}

@test "a connection that the server does not answer ends at --connect-timeout" {
	start_prompt_proxy
	proxy blackhole on
	took_less 6 run -69 rlock run --connect-timeout 500ms a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

@test "replies that take half of the lease: 69, and that the lease is too short" {
	start_prompt_proxy
	proxy delay 500
	run -69 rlock run -n -t 1s a -- touch ran
	assert_output --partial 'answers too slowly for this lease: give a longer one'
	[ ! -e ran ]
	wait_until 5 no_keys
}

@test "garbage instead of a reply: no lock and one line, or the command's status, and nothing is left after the lease" {
	start_prompt_proxy
	proxy garbage "$ACQUIRE" 1000
	run rlock run -t 1s -w 300ms a -- touch ran
	assert_between 1 "$status" 127
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	proxy pass
	is_free_after_lease a 1000
	proxy garbage "$RELEASE" 1000
	run -7 rlock run -t 1s a -- sh -c 'exit 7'
	[ "${#lines[@]}" -eq 1 ] || fail "$output"
	proxy pass
	is_free_after_lease a 1000
}

# ---- requests and replies that get lost ----

@test "an acquire or a release that gets lost, or its reply: the command runs once, its status stands, and nothing is left" {
	local fault
	start_prompt_proxy
	for fault in "drop-reply $ACQUIRE" "cut-before $ACQUIRE" "drop-reply $ACQUIRE 3" "drop-reply $RELEASE 3" "cut-before $RELEASE"; do
		rm -f ran
		# shellcheck disable=SC2086
		proxy $fault
		run_counted -w 10s
		faults_happened
	done
	# Without a wait time, too.
	rm ran
	proxy drop-reply "$ACQUIRE"
	run_counted -n
	faults_happened
}

@test "the reply to the acquire is lost, and no other comes in time: nothing is left after the lease" {
	start_prompt_proxy
	proxy drop-reply "$ACQUIRE" 1000
	run -69 rlock run -w 300ms -t 1s a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
	wait_until 5 no_keys
}

@test "the replies to three renewals are lost: the lock stays held, by one hold" {
	renewal_survives drop-reply "$RENEW" 3
}

has_no_renewers() {
	[ -z "$(renewers)" ]
}

@test "a signal that comes while unlock releases the lock ends it only after that" {
	local whose
	start_prompt_proxy
	in_background bash -c 'rlock lock --pid $$ a && touch locked && until_let_go'
	whose=$PID
	wait_until 5 file_exists locked
	proxy blackhole on up
	in_background rlock unlock --connect-timeout 30s --pid "$whose" a
	# Its renewer gone, the lock would last to the end of its lease.
	wait_until 5 has_no_renewers
	kill -s TERM "$PID"
	proxy cut
	proxy blackhole off
	wait_until 5 no_keys
	wait_until 5 is_gone "$PID"
}

@test "unlock of a lock that expired without its renewer never says that all was well, whatever gets lost" {
	local whose
	start_prompt_proxy
	in_background bash -c 'rlock lock -t 1s --pid $$ a && touch locked && until_let_go'
	whose=$PID
	wait_until 5 file_exists locked
	kill -KILL "$(renewers)"
	wait_until 5 no_keys
	proxy cut-before "$RELEASE"
	run -69 rlock unlock --pid "$whose" a
	faults_happened
	run -76 rlock unlock --pid "$whose" a
	assert_one_line '^rlock: a: .*lost.*$'
}

@test "the reply to a waiter's SUBSCRIBE is lost: it gets the lock all the same" {
	start_prompt_proxy
	proxy drop-reply SUBSCRIBE
	hold_in_background a
	wait_for_lock a
	faults_happened
	let_go
	took_less 10 ended_with 0
	said_nothing
	[ -e ran ]
	wait_until 5 no_keys
}

@test "of two nested commands of one owner, with replies lost for either, each hold is counted a single time" {
	start_prompt_proxy
	in_background rlock run a -- sh -c 'echo "$RLOCK_HELD" >held; until_let_go'
	holder=$PID
	wait_until 5 has_lines held 1
	nested() {
		mkdir "$1"
		in_background env RLOCK_HELD="$(cat held)" BATS_TEST_TMPDIR="$BATS_TEST_TMPDIR/$1" rlock run a -- until_let_go
	}
	[ "$(hold_count a)" = 1 ]
	proxy drop-reply "$ACQUIRE"
	nested first
	first=$PID
	wait_until 5 has_command "$first"
	[ "$(hold_count a)" = 2 ]
	proxy drop-reply "$ACQUIRE" 2
	nested second
	second=$PID
	wait_until 5 has_command "$second"
	faults_happened
	[ "$(hold_count a)" = 3 ]
	proxy drop-reply "$RELEASE"
	touch first/let-go
	ended_with 0 "$first"
	faults_happened
	[ "$(hold_count a)" = 2 ]
	proxy drop-reply "$RELEASE" 2
	touch second/let-go
	ended_with 0 "$second"
	faults_happened
	[ "$(hold_count a)" = 1 ]
	let_go
	ended_with 0 "$holder"
	no_keys
}

# ---- round trips ----

# proxy_counts WHAT: connections, requests, replies, dropped or writes_up.
proxy_counts() {
	proxy count | tr ' ' '\n' | sed -n "s/^$1=//p"
}

@test "an undisturbed run makes two round trips, also with user, password and database" {
	own_server
	rlock run -u "unix://$SERVER_SOCKET?db=2" warm -- true
	redis acl setuser somebody on '>secret' '~*' '&*' +@all
	start_prompt_proxy tcp:127.0.0.1:0
	run -0 rlock run -u "redis://127.0.0.1:$PROXY_PORT" a -- true
	[ "$(proxy_counts writes_up)" = 2 ]
	[ "$(proxy_counts connections)" = 1 ]
	proxy reset-count
	run -0 rlock run -u "redis://somebody:secret@127.0.0.1:$PROXY_PORT/2" --note there a -- \
		redis-cli -s "$SERVER_SOCKET" -n 2 exists a
	assert_output 1
	[ "$(proxy_counts writes_up)" = 2 ]
	[ "$(proxy_counts connections)" = 1 ]
	redis config set requirepass secret
	proxy reset-count
	REDISCLI_AUTH=secret run -0 rlock run -u "redis://127.0.0.1:$PROXY_PORT" a -- true
	[ "$(proxy_counts writes_up)" = 2 ]
}
