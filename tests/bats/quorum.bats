#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers of which some need not agree: acquired, re-entered and released while a minority of them is
# gone, frozen or slow. Waiting for it: quorum_waiting.bats; how it is held on: quorum_held.bats; faults of processes,
# replies and servers: quorum_faults.bats; what all of them must grant: servers.bats.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/agreeing
load ../lib/quorum

# 4 to 10 are for take_servers, 41 and 42 for a test by their numbers.
setup_file() { start_old_servers 10 41 42; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- acquired without some ----

@test "one of three servers that is not there delays no call, of no kind" {
	local verb
	is_nowhere 2
	for verb in run fair rlock wlock; do
		waits_for_none run -0 rlock $verb a b -- ask_redis "$SERVER_SOCKET" exists a b
		assert_output 2
		nothing_but 2
		waits_for_none run -0 rlock $verb -n a -- true
		assert_output ''
		nothing_but 2
	done
}

@test "one of three servers that is frozen delays no call, of no kind, and has nothing when it goes on" {
	local verb
	freeze_server 2
	for verb in run fair rlock wlock; do
		waits_for_none run -0 rlock $verb a -- true
		assert_output ''
		waits_for_none run -7 rlock $verb -n a -- sh -c 'exit 7'
		nothing_but 2
	done
	thaw_server 2
	wait_until 4 on_each no_keys
}

@test "two of three servers that are not there: 69 at once, and nothing is left on the third" {
	local verb
	is_nowhere 1
	is_nowhere 2
	for verb in run fair rlock wlock; do
		waits_for_none run -69 rlock $verb a -- touch ran
		assert_one_line '^rlock: a: quorum not reached: 1 of 3 servers answered, and 2 are needed: '
		on 3 no_keys
	done
	start=$(now_ms)
	run -69 rlock run -w 1s a -- touch ran
	took=$(($(now_ms) - start))
	((took >= 900 && took < 6000)) || fail "took $took ms"
	on 3 no_keys
	[ ! -e ran ]
}

@test "a majority of five is three" {
	use_servers 1 2 3 41 42
	on_each redis flushall >/dev/null
	freeze_server 41
	is_nowhere 2
	waits_for_none run -0 rlock run a -- true
	run -69 rlock run --quorum 4 --connect-timeout 200ms a -- touch ran
	is_nowhere 3
	run -69 rlock run --connect-timeout 200ms a -- touch ran
	assert_one_line '^rlock: a: '
	thaw_server 41
	waits_for_none run -0 rlock run a -- true
	use_servers 1 2 3 41 42
	wait_until 4 on_each no_keys
	[ ! -e ran ]
}

@test "a quorum of its own number: with as many as that the lock is acquired, with fewer it is not" {
	take_servers 4
	is_nowhere "${SERVERS[0]}"
	waits_for_none run -0 rlock run --quorum 3 a -- true
	run -69 rlock run --quorum 4 a -- touch ran
	assert_one_line '^rlock: a: quorum not reached: 3 of 4 servers answered, and 4 are needed: '
	nothing_but "${SERVERS[0]}"
	on "${SERVERS[1]}" held_by_stranger a
	run -75 rlock run --quorum 3 -n a -- touch ran
	[ ! -e ran ]
	on "${SERVERS[2]}" no_keys
	on "${SERVERS[3]}" no_keys
}

# ---- released ----

@test "a release that one of three servers does not answer delays nothing, and arrives when it goes on" {
	listen_to rlock run -t 9s a -- sh -c 'until_let_go; exit 7'
	wait_until 5 on_each is_held a
	freeze_server 2
	let_go
	waits_for_none ended_with 7
	said_nothing
	nothing_but 2
	thaw_server 2
	wait_until 5 on_each no_keys
}

@test "a release reaches a server that was restarted meanwhile and has the lock again" {
	take_servers 3
	hold_on_each a -t 9s
	crash_server "${SERVERS[1]}"
	revive_server "${SERVERS[1]}"
	wait_until 8 on_each is_held a
	let_go
	waits_for_none ended_with 0
	said_nothing
	wait_until 5 on_each no_keys
}

@test "a release that two of three servers do not answer: a warning within the lease, and the command's status" {
	listen_to rlock run -t 2s a -- sh -c 'until_let_go; exit 7'
	wait_until 5 is_above "$PID" sh
	on_each is_held a
	freeze_server 2
	freeze_server 3
	let_go
	took_less 3 ended_with 7
	said_once '^rlock: a: release failed: '
	on 1 no_keys
	thaw_server 2
	thaw_server 3
	wait_until 5 on_each no_keys
}

# ---- without a command, and within each other ----

@test "a script locks, renews and unlocks on a majority, with one server gone" {
	is_nowhere 3
	run -0 bash -c '
		rlock lock --pid $$ a || exit
		ask_redis "$SERVER_SOCKET" hvals a
		rlock renew --pid $$ a || exit
		rlock lock --pid $$ a || exit
		ask_redis "$SERVER_SOCKET" hvals a
		rlock unlock --pid $$ a || exit
		rlock unlock --pid $$ a || exit
		ask_redis "$SERVER_SOCKET" exists a'
	assert_line -n 0 1
	assert_line -n -2 2
	assert_line -n -1 0
	nothing_but 3
	run -0 bash -c 'rlock lock --pid $$ a; exit'
	wait_until 5 nothing_but 3
	wait_until 5 no_hold_files
}

@test "a command within re-enters the lock, with one server gone, or that came back empty" {
	local counts='for number in 1 2 3; do
		redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" hvals a
	done'
	is_nowhere 3
	run -0 rlock run a -- sh -c "rlock run -n a -- sh -c '$counts'; $counts"
	assert_output $'2\n2\n\n1\n1'
	nothing_but 3
	# shellcheck disable=SC2034 # urls_of uses it
	VIA=()
	use_servers 1 2 3
	run -0 rlock run a -- sh -c '
		redis-cli -s "$BATS_FILE_TMPDIR/3/server/redis.sock" flushall >/dev/null
		rlock run -n a -- sh -c "
			rlock run -n a -- sh -c \"\$1\"
			rlock run -n a -- echo third
		" sh "$1"
		rlock run -n a -- rlock run -n a -- sh -c "$1"
		eval "$1"' sh "$counts"
	assert_line -n 0 3
	assert_line -n 1 3
	assert_line -n 3 third
	assert_line -n 4 3
	assert_line -n 5 3
	assert_line -n 7 1
	assert_line -n 8 1
	on_each no_keys
}
