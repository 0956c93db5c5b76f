#!/usr/bin/env bats
# Each key that a lock makes has a TTL, whichever right the user loses, where keys beside it were deleted or overwritten. What
# model.bats (its disturbed locks) does not do: several names, waiters that cannot leave, and side keys that are gone.

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	redis acl setuser default +@all >/dev/null
	watchful_teardown
}

# all_expire: but those that have no TTL on purpose.
all_expire() {
	run -0 redis eval '
		local lasting = {}
		for _, key in ipairs(redis.call("KEYS", "*")) do
			local may_last = key == "permits" or key == "{permits}:timeout"
			if redis.call("PTTL", key) == -1 and not may_last then
				lasting[#lasting + 1] = key
			end
		end
		return lasting' 0
	assert_equal "$1: $output" "$1: "
}

# without_each_right PREPARE COMMAND...: after PREPARE, the command without each right in turn that has to do with how long a
# key lasts, and without those of LACKING, whatever it says.
without_each_right() {
	local right
	for right in pexpire pttl time del exists hset hget zadd set; do
		redis flushall >/dev/null
		"$1"
		# shellcheck disable=SC2086
		redis acl setuser default "-$right" $LACKING >/dev/null
		"${@:2}" >/dev/null 2>&1 || :
		redis acl setuser default +@all >/dev/null
		all_expire "without $right, $*"
	done
}

LACKING=

# A reader of ours and one of Java's, which keeps the lock; what says when ours ends is gone.
read_without_ends() {
	rlock read --owner one --lease 1m a
	redis hset a java:1 1 >/dev/null
	redis set '{a}:java:1:rwlock_timeout:1' 1 px 60000 >/dev/null
	redis del 'rlock_ends:{a}' >/dev/null
}

# held_without_record VERB
held_without_record() {
	rlock "$1" --owner one --lease 1m a
	redis del 'rlock_holds:{a}' >/dev/null
}

lock_without_record() { held_without_record lock; }

read_without_record() { held_without_record read; }

held_by_another() { rlock fair --owner one --lease 1m a; }

permit_without_ends() {
	rlock sem --permits 2 --owner one --lease 1m permits
	redis del 'rlock_ends:{permits}' >/dev/null
}

@test "several names are acquired and released" {
	without_each_right : rlock fair -n a b -- true
	without_each_right : rlock write -n a b -- true
	without_each_right : rlock sem -n --permits 2 --take 2 permits -- true
}

@test "a hold is renewed, or joined, whose side keys were deleted" {
	without_each_right read_without_ends rlock read -n a -- true
	without_each_right read_without_ends rlock renew --owner one --lease 1m a
	without_each_right permit_without_ends rlock renew --owner one --lease 1m permits
}

@test "a lock is re-entered whose holds were deleted" {
	without_each_right lock_without_record rlock lock -n --owner one --lease 1m a
	without_each_right read_without_record rlock read -n --owner one --lease 1m a
}

@test "a waiter joins the queue, and cannot leave it" {
	LACKING='-lrem -zrem'
	without_each_right held_by_another rlock fair -q -w 0.1s a -- true
	without_each_right held_by_another rlock run -q -w 0.1s a -- true
}

@test "one of Redisson's keys for the queue was overwritten" {
	local key
	for key in redisson_lock_queue redisson_lock_timeout rlock_waiters; do
		redis flushall >/dev/null
		held_by_another
		redis set "$key:{a}" text px 60000 >/dev/null
		rlock fair -q -w 0.1s a -- true 2>/dev/null || :
		all_expire "$key"
	done
}
