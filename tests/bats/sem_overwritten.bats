#!/usr/bin/env bats
# Keys of a semaphore that hold something else, were deleted or overwritten; and rights that are missing: no permit is lost for
# others, and what is no semaphore stays as it is.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/permits

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	redis acl setuser default +@all >/dev/null
	watchful_teardown
}

# replace_by_list KEY: in one step, so that no renewal finds the key absent.
replace_by_list() {
	redis rpush "$1.new" x
	redis rename "$1.new" "$1"
}

# ---- keys that are no semaphore ----

@test "a key that is no semaphore stays as it is" {
	local key
	redis set a word
	redis hset b f 1
	redis set c 3
	redis hset '{c}:timeout' f 1
	show_contents >before
	for key in a b c; do
		run -78 rlock sem --permits 3 "$key" -- true
		assert_output --regexp "^rlock: $key: not a lock of this kind: the key holds a (string|hash|semaphore whose side key .*)"
	done
	assert_equal "$(show_contents)" "$(cat before)"
}

@test "the total of a key that is no semaphore is not changed, and 78 says what it holds" {
	redis lpush list a >/dev/null
	redis set text hello >/dev/null
	redis set side 3 >/dev/null
	redis set '{side}:timeout' x >/dev/null
	run -78 rlock sem --permits 3 --resize list
	assert_one_line '^rlock: list: not a lock of this kind: the key holds a list: take another name'
	run -78 rlock sem --permits 3 --resize text
	assert_one_line '^rlock: text: not a lock of this kind: the key holds a string that is no counter: take another name'
	run -78 rlock sem --permits 3 --resize side
	assert_one_line '^rlock: side: not a lock of this kind: the key holds a semaphore whose side key \{side\}:timeout holds a string: take another name'
}

@test "a side key of another type is named, and nothing is changed" {
	local key words
	for key in 'rlock_holds:{a}' 'rlock_ends:{a}' 'rlock_total:{a}' '{a}:timeout'; do
		redis flushall >/dev/null
		redis set a 3 >/dev/null
		redis rpush "$key" x >/dev/null
		show_contents >before
		for words in 'sem -n --permits 3 a -- true' 'sem -n --permits 3 --take 2 a -- true' 'sem --permits 4 --resize a' 'unlock --force a'; do
			# shellcheck disable=SC2086
			run -78 rlock $words
			assert_output "rlock: a: not a lock of this kind: the key holds a semaphore whose side key $key holds a list: take another name"
		done
		run -1 rlock status a
		assert_output "a: no lock: the key holds a semaphore whose side key $key holds a list"
		assert_equal "$(show_contents)" "$(cat before)"
	done
}

@test "unlock --force says of a string that is no counter what it is" {
	local text
	for text in 007 -0 word 99999999999999999999; do
		redis set a "$text" >/dev/null
		for mode in '' '--mode sem'; do
			# shellcheck disable=SC2086
			run -78 rlock unlock --force $mode a
			assert_one_line '^rlock: a: not a lock of this kind: the key holds a string that is no counter: take another name'
		done
		assert_equal "$(redis get a)" "$text"
	done
}

@test "a counter that the server cannot add to is no semaphore" {
	local text
	for text in 007 -0 99999999999999999999 9223372036854775807; do
		redis set a "$text" >/dev/null
		run -78 rlock sem --permits 3 -w 1s a -- true
		assert_one_line '^rlock: a: not a lock of this kind: the key holds a string that is no counter: take another name'
		run -1 rlock status a
		refute_output --partial 'permits free'
	done
}

# ---- keys that were deleted or overwritten ----

@test "a permit whose id is gone is lost, and the command is terminated" {
	hold_permit 2 a -t 1s --take 2
	redis zrem '{a}:timeout' "$(redis zrange '{a}:timeout' 0 0)"
	ended_with 76
	# What was left of the hold came back.
	has_free a 1
	has_held a 0
}

@test "a permit whose keys were deleted or renamed is lost, and the command is terminated" {
	local command
	for command in 'del {a}:timeout' 'rename {a}:timeout b' 'del rlock_holds:{a}' 'rename rlock_holds:{a} b' flushall; do
		redis flushall >/dev/null
		in_background rlock sem --permits 2 -t 1s a -- sh -c 'until_let_go; echo ended >>ended'
		wait_until 5 is_above "$PID" sh
		has_held a 1
		# shellcheck disable=SC2086
		redis $command >/dev/null
		ended_with 76
	done
	[ ! -e ended ]
}

@test "a permit stays held when its counter, ends or total are deleted or renamed: those are made anew" {
	local command
	for command in 'del a' 'rename a b' 'del rlock_ends:{a}' 'del rlock_total:{a}'; do
		redis flushall >/dev/null
		mkfifo go
		in_background rlock sem --permits 2 -t 3s a -- sh -c 'read -r _ <go'
		wait_until 5 is_above "$PID" sh
		has_held a 1
		# shellcheck disable=SC2086
		redis $command >/dev/null
		let_pass 2.5
		run -75 rlock sem -n --permits 2 --take 2 a -- true
		run -0 rlock sem -n --permits 2 a -- true
		echo >go
		ended_with 0
		rm go
		redis del b >/dev/null
		is_whole a 2
	done
}

@test "a permit is lost when its counter was overwritten with another type" {
	hold_permit 2 a -t 6s 2>said
	replace_by_list a
	ended_with 76
	grep -qF 'overwritten with another type (list)' said
}

@test "a permit is lost when a side key was overwritten with another type" {
	hold_permit 1 a -t 6s 2>said
	replace_by_list 'rlock_ends:{a}'
	ended_with 76
	grep -qF 'its key was overwritten with another type (list)' said
	has_free a 1
	has_held a 0
}

@test "a remembered total that was overwritten with a text is ignored" {
	local text
	for text in word 99999999999999999999 inf; do
		hold_permit 2 a
		redis set 'rlock_total:{a}' "$text" >/dev/null
		run -0 rlock sem -n --permits 2 a -- true
		redis set 'rlock_total:{a}' "$text" >/dev/null
		run -0 rlock status a
		assert_output --partial '1 of 2 permits free'
		run -0 rlock unlock --force a
		has_free a 2
		let_go
		ended_with 76
		redis flushall >/dev/null
		rm -f let-go
	done
}

@test "a semaphore whose counter was deleted can be broken" {
	hold_permit 3 a
	redis del a >/dev/null
	run -0 rlock unlock --force a
	has_free a 3
	has_held a 0
	let_go
	ended_with 76
}

# ---- rights that are missing ----

@test "a right that the default user lacks costs no permit" {
	local right
	hold_permit 3 a
	for right in pttl pexpire hset zadd; do
		redis acl setuser default "-$right" >/dev/null
		run -77 rlock sem -n --permits 3 a -- true
		redis acl setuser default "+$right" >/dev/null
		has_free a 2 || fail "without +$right"
	done
	let_go
	ended_with 0
	is_whole a 3
}

# cannot_release RIGHT TAKE: the release of so many permits is denied, and changes nothing.
cannot_release() {
	rlock sem --permits 3 --take "$2" --owner job --lease 3s a
	redis acl setuser default "-$1" >/dev/null
	run -77 rlock unlock --owner job a
	redis acl setuser default "+$1" >/dev/null
	assert_one_line "^rlock: a: .*it needs the ACL rule \\+$1"
	has_held a "$2"
	has_free a $((3 - $2))
}

@test "a release that may not raise the counter changes nothing, and the permits come back when the lease ends" {
	cannot_release incrby 1
	run -0 rlock sem -w 10s --permits 3 --take 3 a -- true
	cannot_release incrby 2
	run -0 rlock sem -w 10s --permits 3 --take 3 a -- true
	cannot_release get 2
	run -0 rlock sem -w 10s --permits 3 --take 3 a -- true
	is_whole a 3
}

@test "a release that a missing right delayed is done once the user has it" {
	rlock sem --permits 3 --owner job --lease 60s a
	redis acl setuser default -incrby >/dev/null
	run -77 rlock unlock --owner job a
	redis acl setuser default +incrby >/dev/null
	run -0 rlock unlock --owner job a
	is_whole a 3
}

@test "a permit is back, and waiters are notified, though its record cannot be deleted" {
	redis acl setuser default -hdel >/dev/null
	record_channel 'redisson_sc:{a}'
	run -0 rlock sem --permits 2 a -- true
	redis acl setuser default +hdel >/dev/null
	has_free a 2
	assert_equal "$(show_channel 'redisson_sc:{a}')" '1 2'
}
