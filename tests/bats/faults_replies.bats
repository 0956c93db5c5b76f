#!/usr/bin/env bats
# bats file_tags=long
# Requests and replies that get lost: what was sent again counts a single time, and nothing is left.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/faults

setup_file() { start_warm_server run; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

@test "the reply to the acquire is lost: the command runs once, and nothing is left" {
	start_prompt_proxy
	proxy drop-reply "$ACQUIRE"
	run_counted
	faults_happened
}

@test "the reply to the acquire is lost for a call that does not wait: the command runs once, and nothing is left" {
	start_prompt_proxy
	proxy drop-reply "$ACQUIRE"
	run_counted -n
	faults_happened
}

@test "the reply to the acquire is lost three times: the command runs once, and nothing is left" {
	start_prompt_proxy
	proxy drop-reply "$ACQUIRE" 3
	run_counted -w 10s
	faults_happened
}

@test "the acquire does not reach the server: the command runs once, and nothing is left" {
	start_prompt_proxy
	proxy cut-before "$ACQUIRE"
	run_counted
	faults_happened
}

@test "the reply to the acquire comes too late: the command runs once, with one hold" {
	start_prompt_proxy
	proxy hold-reply "$ACQUIRE"
	run_counted -w 5s --connect-timeout 300ms
	proxy release
	no_keys
}

@test "the reply to the acquire is lost, and no other comes in time: nothing is left after the lease" {
	start_prompt_proxy
	proxy drop-reply "$ACQUIRE" 1000
	run -69 rlock run -w 300ms -t 1s a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
	wait_until 2 no_keys
}

@test "the reply to the release is lost: the command's status stands, and nothing is left" {
	start_prompt_proxy
	proxy drop-reply "$RELEASE"
	run_counted
	faults_happened
}

@test "the reply to the release is lost three times: the command's status stands, and nothing is left" {
	start_prompt_proxy
	proxy drop-reply "$RELEASE" 3
	run_counted
	faults_happened
}

has_no_renewers() {
	[ -z "$(renewers)" ]
}

@test "a signal that comes while unlock releases the lock ends it only after that" {
	local signal
	start_prompt_proxy
	for signal in INT TERM HUP; do
		in_background bash -c 'rlock lock --pid $$ a && touch locked && until_let_go'
		local whose=$PID
		wait_until 5 file_exists locked
		proxy blackhole on up
		in_background rlock unlock --connect-timeout 30s --pid "$whose" a
		# Its renewer gone, the lock would last to the end of its lease.
		wait_until 5 has_no_renewers
		kill -s "$signal" "$PID"
		proxy cut
		proxy blackhole off
		wait_until 5 no_keys
		wait_until 5 is_gone "$PID"
		rm locked
	done
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

@test "the release does not reach the server: it is sent again" {
	start_prompt_proxy
	proxy cut-before "$RELEASE"
	run_counted
	faults_happened
}

@test "all replies are lost once: the command runs once, and nothing is left" {
	start_prompt_proxy
	proxy drop-reply SETNAME
	proxy drop-reply "$ACQUIRE"
	proxy drop-reply "$RELEASE"
	run_counted
	faults_happened
}

@test "the reply to a renewal is lost: the lock stays held, by one hold" {
	renewal_survives drop-reply "$RENEW"
}

@test "the replies to three renewals are lost: the lock stays held, by one hold" {
	renewal_survives drop-reply "$RENEW" 3
}

@test "a renewal does not reach the server: the lock stays held" {
	renewal_survives cut-before "$RENEW"
}

@test "the reply to a waiter's SUBSCRIBE is lost: it gets the lock all the same" {
	start_prompt_proxy
	proxy drop-reply SUBSCRIBE
	hold_in_background a
	wait_for_lock a
	faults_happened
	let_go
	took_less 3 ended_with 0
	said_nothing
	[ -e ran ]
	wait_until 2 no_keys
}

@test "a waiter's reply is lost after the one that gave it the lock: the command runs once" {
	start_prompt_proxy
	hold_in_background a
	in_background sh -c 'exec "$@" 2>said' sh rlock run a -- sh -c 'echo >>ran; ask_redis "$SERVER_SOCKET" hvals a >counts'
	wait_until 5 has_waiters a
	proxy drop-reply "$ACQUIRE"
	let_go
	ended_with 0
	faults_happened
	has_lines ran 1
	file_says counts 1
	wait_until 2 no_keys
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
