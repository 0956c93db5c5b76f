#!/usr/bin/env bats
# bats file_tags=long
# Each key that a lock makes has a TTL, whichever right the user loses at whatever moment, and whatever was overwritten.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

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

RIGHTS='hlen hexists hkeys hvals hget hgetall hset hdel hincrby del exists type pttl pexpire time get set incrby
	zadd zrem zrange zcard zscore lindex lpos lrange linsert rpush lrem publish info pubsub'

# all_expire: but those that have no TTL on purpose.
all_expire() {
	run -0 redis eval '
		local lasting = {}
		for _, key in ipairs(redis.call("KEYS", "*")) do
			local may_last = key:find("^redisson_lock_token:") or key == "permits" or key == "{permits}:timeout"
			if redis.call("PTTL", key) == -1 and not may_last then
				lasting[#lasting + 1] = key
			end
		end
		return lasting' 0
	assert_equal "$1: $output" "$1: "
}

# without_each_right PREPARE COMMAND...: after PREPARE, the command without each right in turn, and without those of LACKING,
# whatever it says.
without_each_right() {
	local right
	for right in $RIGHTS; do
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

nothing() { :; }

read_beside() { rlock read --owner one --lease 1m a; }

# Java's reader keeps the lock.
read_beside_java() {
	read_beside
	redis hset a java:1 1 >/dev/null
	redis set '{a}:java:1:rwlock_timeout:1' 1 px 60000 >/dev/null
}

read_without_ends() {
	read_beside_java
	redis del 'rlock_ends:{a}' >/dev/null
}

read_without_record() {
	read_beside
	redis del 'rlock_holds:{a}' >/dev/null
}

held_without_record() {
	rlock lock --owner one --lease 1m a
	redis del 'rlock_holds:{a}' >/dev/null
}

held_by_another() { rlock fair --owner one --lease 1m a; }

permit_without_ends() {
	rlock sem --permits 2 --owner one --lease 1m permits
	redis del 'rlock_ends:{permits}' >/dev/null
}

@test "a lock of each kind is acquired and released" {
	local verb
	for verb in lock fair read write; do
		without_each_right nothing rlock "$verb" -n a -- true
		without_each_right nothing rlock "$verb" -n a b -- true
	done
	without_each_right nothing rlock sem -n --permits 2 permits -- true
	without_each_right nothing rlock sem -n --permits 2 --take 2 permits -- true
}

@test "a reader joins others" {
	without_each_right read_beside rlock read -n a -- true
	without_each_right read_beside_java rlock read -n a -- true
	without_each_right read_without_ends rlock read -n a -- true
}

@test "a hold is renewed whose side keys were deleted" {
	without_each_right read_without_ends rlock renew --owner one --lease 1m a
	without_each_right permit_without_ends rlock renew --owner one --lease 1m permits
}

@test "a lock is re-entered whose holds were deleted" {
	without_each_right held_without_record rlock lock -n --owner one --lease 1m a
	without_each_right read_without_record rlock read -n --owner one --lease 1m a
	without_each_right read_without_record rlock read -n a -- true
}

@test "a waiter joins the queue, and cannot leave it" {
	LACKING='-lrem -zrem'
	without_each_right held_by_another rlock fair -q -w 0.1s a -- true
	without_each_right held_by_another rlock run -q -w 0.1s a -- true
}

# keeps VERB [OPTION...] NAME: the lock is kept, without the right RIGHT.
keeps() {
	rlock "$1" --at-least 1m "${@:2}" -- redis-cli -s "$SERVER_SOCKET" acl setuser default "-$RIGHT"
}

@test "a lock of each kind is kept" {
	local RIGHT verb
	for RIGHT in $RIGHTS; do
		for verb in run fair read write; do
			redis flushall >/dev/null
			keeps "$verb" a >/dev/null 2>&1 || :
			redis acl setuser default +@all >/dev/null
			all_expire "$verb is kept without $RIGHT"
		done
		redis flushall >/dev/null
		keeps sem --permits 2 permits >/dev/null 2>&1 || :
		redis acl setuser default +@all >/dev/null
		all_expire "a permit is kept without $RIGHT"
	done
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

# keep_again SCRIPT KEY...: the request to keep the hold 1 of the lock "a" comes a second time.
keep_again() {
	local lua=$BATS_TEST_DIRNAME/../../lua
	redis eval "$(awk -f "$lua/expand.awk" "$lua/$1.lua" "$lua"/inc/*.lua)" $(($# - 1)) "${@:2}" \
		1 60000 'rlock_queue:{a}' 'rlock_turn:{a}' channel '{a}' >/dev/null
}

@test "a request to keep a hold comes again when the time of the hold is over, and the lock is there still" {
	local owner=job:0:lingering:1000
	redis hset 'rlock_holds:{a}' 1 "$owner 500 1000 - a note" >/dev/null
	redis pexpire 'rlock_holds:{a}' 5000 >/dev/null
	redis hset a "$owner" 1 >/dev/null
	redis pexpire a 5000 >/dev/null
	keep_again plain_keep_until a 'rlock_holds:{a}' 'redisson_lock_queue:{a}' 'redisson_lock_timeout:{a}' 'rlock_waiters:{a}'
	all_expire plain
	redis hset a mode write >/dev/null
	keep_again readwrite_keep_until a 'rlock_holds:{a}' 'rlock_ends:{a}'
	all_expire write
}

@test "a reader's hold is released whose other record was deleted" {
	reader_without_a_record() {
		rlock read --owner one --lease 1m a
		rlock read --owner one --lease 1m a
		rlock read --owner one --lease 1m a
		redis eval '
			local latest, found = "", nil
			local listed = redis.call("HGETALL", KEYS[1])
			for i = 1, #listed, 2 do
				if #listed[i] == 32 and listed[i + 1] > latest then latest, found = listed[i + 1], listed[i] end
			end
			for i = 1, #listed, 2 do
				if #listed[i] == 32 and listed[i] ~= found then redis.call("HDEL", KEYS[1], listed[i]) end
			end' 1 'rlock_holds:{a}' >/dev/null
	}
	without_each_right reader_without_a_record rlock unlock --owner one a
}
