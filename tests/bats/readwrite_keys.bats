#!/usr/bin/env bats
# What stands on the server for a read or write lock, and is published, is what Redisson's read/write lock would have put there
# and published.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what stands on the server ----

@test "a read lock is the hash and the timeout key that Redisson's reader has" {
	admit_guest r rlock a
	local owner
	owner=$(owner_of a "$PID")
	assert_equal "$(redis hgetall a)" "mode
read
$owner
1"
	assert_equal "$(list_keys)" "a
rlock_ends:{a}
rlock_holds:{a}
{a}:$owner:rwlock_timeout:1"
	assert_equal "$(redis get "{a}:$owner:rwlock_timeout:1")" 1
	ttl_between 15000 a 30000
	ttl_between 15000 "{a}:$owner:rwlock_timeout:1" 30000
	ttl_between 15000 'rlock_holds:{a}' 30000
	ttl_between 15000 'rlock_ends:{a}' 30000
	let_guest_out r
	ended_with 0
	no_keys
}

@test "a write lock is the hash that Redisson's writer has, and no timeout key" {
	admit_guest w wlock a
	local owner
	owner=$(owner_of a "$PID")
	assert_equal "$(redis hgetall a)" "mode
write
$owner:write
1"
	assert_equal "$(list_keys)" "a
rlock_holds:{a}"
	ttl_between 15000 a 30000
	ttl_between 15000 'rlock_holds:{a}' 30000
	let_guest_out w
	ended_with 0
	no_keys
}

@test "a writer that waits for readers leaves a key with a short life, which goes when it is in" {
	admit_guest r rlock a
	queue_guest w wlock a --note 'the writer'
	ttl_between 1 'rlock_writer:{a}' 5000
	run -0 redis get 'rlock_writer:{a}'
	assert_output --partial 'the writer'
	let_guest_out r
	wait_until 5 is_inside w
	is_free 'rlock_writer:{a}'
	let_guest_out w
	ended_with 0
	no_keys
}

# ---- messages ----

@test "the last reader to leave publishes 0, those before it nothing" {
	local first
	record_channel 'redisson_rwlock:{a}'
	admit_guest r1 rlock a
	first=$PID
	admit_guest r2 rlock a
	let_guest_out r1
	ended_with 0 "$first"
	redis publish 'redisson_rwlock:{a}' between >/dev/null
	let_guest_out r2
	ended_with 0
	assert_equal "$(show_channel 'redisson_rwlock:{a}')" 'between 0'
}

@test "a writer that leaves publishes 1, and nothing while it is still in" {
	record_channel 'redisson_rwlock:{a}'
	run -0 rlock wlock a -- sh -c '
		rlock wlock -n a -- true
		rlock rlock -n a -- true
		$REDIS publish "redisson_rwlock:{a}" between'
	assert_equal "$(show_channel 'redisson_rwlock:{a}')" 'between 1'
}
