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

# ---- keys that were deleted or overwritten ----

@test "a permit whose id is gone is lost, and the command is terminated" {
	hold_permit 2 a -t 1s --take 2
	redis zrem '{a}:timeout' "$(redis zrange '{a}:timeout' 0 0)"
	ended_with 76
	# What was left of the hold came back.
	has_free a 1
	has_held a 0
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

# ---- rights that are missing ----

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
