#!/usr/bin/env bats
# A user that may do only some things: the rights that the manual lists are enough for all that rlock does, and without
# one of them it is named. Each right with each verb is tried by acl.bats.

load ../lib/helpers
load ../lib/rights
load ../lib/passwords

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }
setup() { password_setup; }
teardown() { password_teardown; }

# The user with these rights makes the calls.
as_least_rights() {
	least_rights
	export RLOCK_URL=$CI_URL
}

# all_of_kind VERB LOCK_VERB: what can be done with a lock that no other wants.
all_of_kind() {
	local verb=$1 lock=$2
	run -0 rlock "$verb" -n nightly nightly2 -- ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
	run -0 rlock "$verb" -t 3s nightly -- sleep 1.4
	assert_output ''
	run -0 rlock "$verb" --db 3 nightly -- true
	run -0 rlock "$verb" 'nightly {x' -- rlock "$verb" 'nightly {x' -- true
	run -0 rlock "$verb" --at-least 50ms nightly -- true
	run -0 rlock "$verb" -w 5s nightly -- true
	# A reader does not wait for what another one is to keep.
	wait_until 5 server_is_empty
	run -0 rlock "$lock" --owner x --lease 20s nightly
	run -0 rlock renew --owner x --lease 20s nightly
	run -0 rlock unlock --owner x nightly
	run -1 rlock unlock --owner x nightly
	run -0 rlock "$lock" --pid $$ nightly
	run -0 rlock renew --pid $$ nightly
	run -0 rlock unlock --pid $$ nightly
	run -0 rlock "$lock" --owner x --lease 20s nightly
	run -0 rlock unlock --force nightly
	assert_output --regexp 'lock broken: it was held by .*x:0(:write)?\)?, which may still run$'
	assert_equal "$(redis acl log)" ''
	wait_until 5 server_is_empty
}

# What has expired counts until the server comes by.
server_is_empty() {
	[ "$(redis info keyspace | grep -c ^db)" = 0 ]
}

# waiting_of_kind HOLD WAIT: a waiter by the verb WAIT for HOLD gives up, is ended, gets the lock when it is
# released, when it is broken, and when its lease is over.
waiting_of_kind() {
	local hold=$1 wait=$2
	run -0 rlock "$hold" --owner x --lease 20s nightly
	run -75 rlock "$wait" -w 1s nightly -- true
	assert_output --partial 'held by'
	in_background rlock "$wait" nightly -- true
	wait_until 5 waits_as_any
	kill "$PID"
	wait "$PID" || :
	wait_until 5 nothing_is_listened_to
	in_background rlock "$wait" -w 20s nightly -- true
	wait_until 5 waits_as_any
	run -0 rlock unlock --owner x nightly
	wait "$PID"
	run -0 rlock "$hold" --owner x --lease 20s nightly
	in_background rlock "$wait" -w 20s nightly -- true
	wait_until 5 waits_as_any
	run -0 rlock unlock --force nightly
	wait "$PID"
	run -0 rlock "$hold" --owner x --lease 1s nightly
	run -0 rlock "$wait" -w 20s nightly -- true
	assert_equal "$(redis acl log)" ''
	wait_until 5 server_is_empty
}
waits_as_any() {
	[ "$(redis pubsub channels)" != '' ]
}

@test "the rights that the manual lists are enough for everything" {
	as_least_rights
	all_of_kind run lock
	all_of_kind fair fair
	all_of_kind rlock rlock
	all_of_kind wlock wlock
}

@test "the rights that the manual lists are enough to wait for a lock of each kind" {
	as_least_rights
	waiting_of_kind lock lock
	waiting_of_kind fair fair
	waiting_of_kind rlock wlock
	waiting_of_kind wlock rlock
	waiting_of_kind wlock wlock
}

@test "the rights that the manual lists are enough for what one kind of lock has to do with another" {
	as_least_rights
	waiting_of_kind lock fair
	waiting_of_kind fair lock
	run -0 rlock wlock nightly -- rlock rlock nightly -- true
	run -64 rlock rlock nightly -- rlock wlock nightly -- true
	run -78 rlock rlock nightly -- rlock run nightly -- true
	run -78 rlock fair nightly -- rlock rlock nightly -- true
	run -0 rlock rlock --owner x --lease 20s nightly
	run -0 rlock rlock --owner y --lease 20s nightly
	run -0 rlock unlock --force --holder x:0 nightly
	run -0 rlock unlock --force --holder y:0 nightly
	assert_equal "$(redis acl log)" ''
	nothing_is_locked
}

@test "the rights that the manual lists are enough for fencing tokens" {
	local verb
	as_least_rights
	for verb in run fair; do
		run -0 rlock "$verb" --fence nightly -- printenv RLOCK_TOKEN
		run -0 rlock "$verb" nightly -- true
	done
	assert_equal "$(redis get 'redisson_lock_token:{nightly}')" 4
	assert_equal "$(redis acl log)" ''
}

@test "the rights that the manual lists are enough for a majority of several servers" {
	as_least_rights
	# Databases in the place of servers, which count when they have been up for a lease.
	run -0 rlock run -t 3s -w 20s -u "$CI_URL/1 $CI_URL/2 $CI_URL/3" --quorum majority nightly -- true
	assert_output ''
	assert_equal "$(redis acl log)" ''
	nothing_is_locked
}

@test "the rights that the manual lists are enough for a line with a dead one in it" {
	as_least_rights
	redis zadd 'redisson_lock_timeout:{nightly}' 1 java:1 >/dev/null
	redis rpush 'redisson_lock_queue:{nightly}' java:1 java:2 >/dev/null
	run -0 rlock run nightly -- true
	assert_output ''
	redis zadd 'redisson_lock_timeout:{nightly}' 1 java:1 >/dev/null
	redis rpush 'redisson_lock_queue:{nightly}' java:1 java:2 >/dev/null
	run -0 rlock fair nightly -- true
	assert_output ''
	assert_equal "$(redis acl log)" ''
	nothing_is_locked
}

@test "the rights that the manual lists let others' locks alone" {
	least_rights
	run rlock run -n -u "$CI_URL" daily -- touch ran
	assert_refused 77 '~'
	nothing_is_locked
}

# with_all_but RULE... : the rights of the manual, without some.
with_all_but() {
	redis acl deluser ci >/dev/null
	least_rights
	redis acl setuser ci "$@" >/dev/null
	redis script flush >/dev/null
}

# The lock is free, and whatever else is there expires.
nothing_is_left() {
	local key
	is_free nightly
	for key in $(redis keys '*'); do
		assert [ "$(redis pttl "$key")" -ge 0 ]
	done
}

ACQUIRE_RIGHTS='hlen hget hexists hkeys exists time hincrby hset hdel del pttl pexpire'

@test "without one of the rights to acquire a lock it is refused, and nothing stays locked" {
	local right
	for right in evalsha $ACQUIRE_RIGHTS; do
		with_all_but "-$right"
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_refused 77 denied
		nothing_is_left
		# Again, with the script at hand.
		rlock run warm -- true
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_refused 77 denied
		nothing_is_left
	done
}

@test "without two of the rights that undo an acquisition it is refused, and nothing is left" {
	local missing verb
	for missing in '-del -hdel' '-hdel -pexpire' '-del -pexpire' '-del -hdel -zrem -pexpire' '-hset -hdel -del'; do
		# shellcheck disable=SC2086
		with_all_but $missing
		for verb in run fair rlock wlock 'sem --permits 2'; do
			# shellcheck disable=SC2086
			run -77 rlock $verb -n -u "$CI_URL" nightly -- touch ran
			assert_refused 77 denied
			no_keys
		done
	done
	# What is added to the queue of a fair lock to try that is removed by it.
	with_all_but -lrem
	run -77 rlock fair -n -u "$CI_URL" nightly -- touch ran
	assert_refused 77 denied
	no_keys
}

@test "without one of the rights to acquire a lock the one that is missing is named" {
	local right
	for right in evalsha $ACQUIRE_RIGHTS; do
		with_all_but "-$right"
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_output --partial "+$right"
		redis flushall >/dev/null
	done
}

@test "without the right to send a script that the server does not know it is named" {
	with_all_but -eval
	run rlock run -n -u "$CI_URL" nightly -- touch ran
	assert_refused 77 +eval
	nothing_is_locked
}

@test "without the right to choose a database it is named, and nothing is locked in another one" {
	with_all_but -select
	run rlock run -n --db 3 -u "$CI_URL" nightly -- touch ran
	assert_refused 77 +select
	nothing_is_locked
}

@test "without the right to look at the holder the missing one is named" {
	local right
	redis hset nightly x:1 1 >/dev/null
	for right in hkeys hvals subscribe; do
		with_all_but "-$right"
		run rlock run -w 5s -u "$CI_URL" nightly -- touch ran
		assert_refused 77 "+$right"
	done
}

@test "without a right to the lock's keys the rule is named, and nothing is locked" {
	local keys
	for keys in '~nightly*' '~nightly* ~rlock_*' '~nightly* ~redisson_*' '~rlock_* ~redisson_*'; do
		# shellcheck disable=SC2086
		with_all_but resetkeys $keys
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_refused 77 '~'
		nothing_is_locked
	done
}

@test "without a right to the lock's channel a caller that has to wait is told the rule" {
	with_all_but resetchannels
	redis hset nightly x:1 1 >/dev/null
	run rlock run -w 5s -u "$CI_URL" nightly -- touch ran
	assert_refused 77 '&redisson_*'
}

@test "without the right to notify waiters the command's status stands, and a warning is given" {
	local rule
	for rule in -publish resetchannels; do
		with_all_but "$rule"
		run -7 rlock run -n -u "$CI_URL" nightly -- sh -c 'exit 7'
		assert_equal "${#lines[@]}" 1
		assert_output --regexp '^rlock: nightly: '
		[ "$rule" != -publish ] || assert_output --partial +publish
		[ "$rule" != resetchannels ] || assert_output --partial '&redisson_*'
		refute_output --partial "$SECRET"
		nothing_is_locked
	done
}

@test "when the right to release a lock is taken away the command's status stands, and a warning names it" {
	least_rights
	# shellcheck disable=SC2016
	run -7 rlock run -l 5s -u "$CI_URL" nightly -- \
		sh -c 'ask_redis "$SERVER_SOCKET" acl setuser ci -hget >/dev/null; exit 7'
	assert_equal "${#lines[@]}" 1
	assert_output --partial +hget
	wait_until 10 is_free nightly
}

@test "without the right to give oneself a name all goes well" {
	with_all_but '-client|setname'
	run -0 rlock run -n -u "$CI_URL" nightly -- true
	assert_output ''
}

@test "without a right to break a lock it is named, and the lock is left alone" {
	redis hset nightly x:1 1 >/dev/null
	with_all_but -del
	run rlock unlock --force -u "$CI_URL" nightly
	assert_refused 77 +del
	is_held nightly
}

@test "a right that is taken away while the lock is held does not harm its release" {
	least_rights
	in_background rlock run -u "$CI_URL" nightly -- until_let_go
	wait_until 5 is_held nightly
	redis acl setuser ci -hset -subscribe -select >/dev/null
	let_go
	wait "$PID"
	nothing_is_locked
}
