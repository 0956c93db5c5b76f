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
	ttl_between 25000 a 30000
	ttl_between 25000 "{a}:$owner:rwlock_timeout:1" 30000
	ttl_between 25000 'rlock_holds:{a}' 30000
	ttl_between 25000 'rlock_ends:{a}' 30000
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
	ttl_between 25000 a 30000
	ttl_between 25000 'rlock_holds:{a}' 30000
	let_guest_out w
	ended_with 0
	no_keys
}

@test "each reader has a field and a timeout key of its own" {
	local first second
	admit_guest r1 rlock a -t 1m
	first=$PID
	admit_guest r2 rlock a -t 20s
	second=$PID
	local one two
	one=$(owner_of a "$first")
	two=$(owner_of a "$second")
	assert_equal "$(redis hgetall a)" "mode
read
$one
1
$two
1"
	ttl_between 55000 "{a}:$one:rwlock_timeout:1" 60000
	ttl_between 15000 "{a}:$two:rwlock_timeout:1" 20000
	assert_equal "$(count_records a)" 2
	let_guest_out r1
	ended_with 0 "$first"
	assert_equal "$(redis hgetall a)" "mode
read
$two
1"
	assert_equal "$(list_keys '{a}:*')" "{a}:$two:rwlock_timeout:1"
	assert_equal "$(count_records a)" 1
	let_guest_out r2
	ended_with 0 "$second"
	no_keys
}

@test "each hold of a reader has a timeout key, and the last one's goes first" {
	run -0 rlock rlock a -- sh -c '
		rlock rlock -n a -- sh -c "\$REDIS hget a \$RLOCK_OWNER; \$REDIS keys \"{a}:*\" | sort"
		$REDIS hget a "$RLOCK_OWNER"
		$REDIS keys "{a}:*"
	'
	assert_equal "${#lines[@]}" 5
	assert_line -n 0 2
	assert_line -n 1 --regexp "^\{a\}:$UUID:[0-9]+:rwlock_timeout:1\$"
	assert_line -n 2 "${lines[1]%1}2"
	assert_line -n 3 1
	assert_line -n 4 "${lines[1]}"
	no_keys
}

@test "a writer that re-enters is counted, and stays the only one" {
	run -0 rlock wlock a -- sh -c '
		rlock wlock -n a -- $REDIS hgetall a
		$REDIS hvals a
		$REDIS dbsize
	'
	assert_equal "${#lines[@]}" 7
	assert_line -n 1 write
	assert_line -n 2 --regexp ':write$'
	assert_line -n 3 2
	assert_line -n 4 write
	assert_line -n 5 1
	assert_line -n 6 2
	no_keys
}

@test "a reader inside its own write lock has a field and a timeout key, and the mode stays write" {
	run -0 rlock wlock a -- sh -c '
		rlock rlock -n a -- sh -c "\$REDIS hgetall a; \$REDIS keys \"{a}:*\""
		$REDIS hgetall a
		$REDIS dbsize
	'
	local owner=${lines[4]}
	assert_output "mode
write
$owner:write
1
$owner
1
{a}:$owner:rwlock_timeout:1
mode
write
$owner:write
1
2"
	no_keys
}

@test "names with braces, closed or not, go into the names beside them as they are" {
	local name owner
	for name in 'a{b}c' '{a}:b' 'a{b' '{}x'; do
		admit_guest r rlock "$name"
		owner=$(owner_of "$name" "$PID")
		record_channel "redisson_rwlock:$name"
		assert_equal "$(list_keys)" "$(printf '%s\n' "$name" "$name:$owner:rwlock_timeout:1" \
			"rlock_ends:$name" "rlock_holds:$name" | LC_ALL=C sort)"
		queue_guest w wlock "$name"
		is_held "rlock_writer:$name"
		let_guest_out r
		wait_until 5 is_inside w
		assert_equal "$(list_keys)" "$(printf '%s\n' "$name" "rlock_holds:$name" | LC_ALL=C sort)"
		let_guest_out w
		ended_with 0
		assert_equal "$(show_channel "redisson_rwlock:$name")" '0 1'
		wait_until 5 no_keys
		rm -f in-* out-*
	done
}

@test "a name with a closing brace alone is wrapped as any other" {
	run -0 rlock rlock 'a}b' -- sh -c '$REDIS keys "{*"'
	assert_output --regexp "^\{a\}b\}:$UUID:[0-9]+:rwlock_timeout:1\$"
	no_keys
}

@test "the command is told the kind of its lock, and an owner without ':write'" {
	run -0 rlock rlock a -- sh -c 'echo $RLOCK_MODE; $REDIS hexists a $RLOCK_OWNER'
	assert_output "read
1"
	run -0 rlock wlock a -- sh -c 'echo $RLOCK_MODE; $REDIS hexists a $RLOCK_OWNER:write'
	assert_output "write
1"
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

@test "a writer that waits for a writer, or does not wait, claims no turn" {
	admit_guest r rlock a
	run -75 rlock wlock -n a -- true
	is_free 'rlock_writer:{a}'
	let_guest_out r
	ended_with 0
	admit_guest w1 wlock a
	queue_guest w2 wlock a
	is_free 'rlock_writer:{a}'
	let_go
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

@test "a reader that entered twice publishes once, when it is out" {
	record_channel 'redisson_rwlock:{a}'
	run -0 rlock rlock a -- sh -c 'rlock rlock -n a -- true; $REDIS publish "redisson_rwlock:{a}" between'
	assert_equal "$(show_channel 'redisson_rwlock:{a}')" 'between 0'
}

@test "nothing is published on the channel of plain locks" {
	record_channel 'redisson_lock__channel:{a}'
	run -0 rlock rlock a -- true
	run -0 rlock wlock a -- true
	assert_equal "$(show_channel 'redisson_lock__channel:{a}')" ''
}

@test "a write lock released with a read of its owner inside becomes a read lock, and publishes 1" {
	record_channel 'redisson_rwlock:{a}'
	run -0 rlock wlock a -- sh -c 'rlock rlock -n a -- inside r >/dev/null 2>&1 3>&- & comes_true test -e in-r'
	is_mode a read
	assert_equal "$(redis hlen a)" 2
	assert_equal "$(count_records a)" 1
	redis publish 'redisson_rwlock:{a}' between >/dev/null
	let_guest_out r
	wait_until 5 no_keys
	assert_equal "$(show_channel 'redisson_rwlock:{a}')" '1 between 0'
}
