#!/usr/bin/env bats
# bats file_tags=long
# Several names in one call: all are acquired or none, whatever their order, also in the queues of fair locks. (overwritten.bats: when
# one of them is lost, the others are released.)

load ../lib/usual
load ../lib/queue

@test "several names of any kind are all acquired or none, whichever of them is held" {
	local verb other taken
	while read -r verb other taken; do
		rm -f in-* out-*
		start_holder h "$other" --note 'the holder' "$taken"
		list_keys >before
		run -75 rlock "$verb" -n a b c -- touch ran
		assert_output ''
		run_timed_out 75 rlock "$verb" -w 30ms a b c -- touch ran
		assert_one_line "^rlock: $taken: timed out after 30ms: held by the holder \("
		list_keys | diff before - || fail "keys of $verb are left"
		finish_contenders h
		wait_until 5 no_keys
	done <<-'EOT'
		run run a
		fair fair b
		run fair c
		fair run a
		write write b
		write read c
		read write a
	EOT
	refute file_exists ran
}

@test "a waiter for two names is woken by the last release, and does not exclude others from either name until then" {
	local start
	start_holder x run a
	start_holder y run b
	start=$(now_ms)
	queue_contender w run a b
	queue_contender one run a
	finish_contenders x
	# The waiter for two names is woken first, and must leave the free name to the next waiter. But if it has waited for 2 s, as on a busy
	# machine, the server keeps the name for it for up to 2 s.
	if (($(now_ms) - start < 2000)); then enters_when_woken one; else wait_until_entered one 10; fi
	finish_contenders one
	are_waiting w
	finish_contenders y
	enters_when_woken w
	finish_contenders w
	nothing_is_left
}

@test "a waiter for several fair locks is in each queue, and later callers are behind it in each, whatever their order of names" {
	local name owner
	start_holder h fair b
	queue_fair_contender r1 --note 'the first' a b c
	queue_fair_contender r2 b a
	queue_fair_contender r3 a
	queue_fair_contender r4 b
	queue_is a r1 r2 r3
	queue_is b r1 r2 r4
	queue_is c r1
	owner=$(owner_in_queue b r1)
	for name in a b c; do
		redis_says "$owner" zrange "redisson_lock_timeout:{$name}" 0 0
		redis_says 1 hexists "rlock_waiters:{$name}" "$owner"
	done
	is_free a
	# "a" must be reserved for the first waiter, which also waits for another name.
	run_timed_out 75 rlock fair -w 50ms a -- true
	assert_one_line '^rlock: a: timed out after 50ms: kept for the next waiter, the first \('
	is_woken_by b r1 finish_contenders h
	for name in a b c; do
		is_held "$name"
	done
	redis_says 0 exists 'redisson_lock_queue:{c}' 'redisson_lock_timeout:{c}' 'rlock_waiters:{c}'
	enter_in_order r1 r2
	wait_until 5 have_entered r3 r4
	finish_contenders r3 r4
	nothing_is_left
}
