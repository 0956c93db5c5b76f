#!/usr/bin/env bats
# Semaphores: slots, the numbers that no two holders have, for "any one of three machines", and keys that were deleted or
# overwritten.

load ../lib/usual
load ../lib/sharing
load ../lib/permits
load ../lib/inspecting

teardown() {
	redis acl setuser default +@all >/dev/null
	watchful_teardown
}

# slots_of OWNER [OPTION...]: the owner acquires permits of "a", of which there are five; prints its slots.
slots_of() {
	rlock sem -n --permits 5 --lease 1m --owner "$@" a
}

# gets SLOTS OWNER [OPTION...]
gets() {
	assert_equal "$(slots_of "${@:2}")" "$1"
}

leaves() {
	rlock unlock --owner "$1" a
}

@test "the command learns its slot, the lowest that no other holder has" {
	run -0 rlock sem --permits 3 a -- printenv RLOCK_SLOT
	assert_output 1
	hold_permit 3 a
	local first=$PID
	hold_permit 3 a
	run -0 rlock sem --permits 3 a -- printenv RLOCK_SLOT
	assert_output 3
	kill -TERM "$first"
	ended_with 143 "$first"
	run -0 rlock sem --permits 3 a -- printenv RLOCK_SLOT
	assert_output 1
	let_go
	ended_with 0
	is_whole a 3
}

@test "several permits have as many slots, with a blank between two, and those need not be in a row" {
	run -0 rlock sem --permits 5 --take 3 a -- printenv RLOCK_SLOT
	assert_output '1 2 3'
	gets 1 one
	gets 2 two
	leaves one
	gets '1 3 4' three --take 3
	leaves two
	gets 2 four
	leaves three
	gets '1 3 4 5' five --take 4
	leaves four
	leaves five
	is_whole a 5
}

@test "slots in the form of an older version are read from the records of the holds" {
	gets 1 one
	gets 2 two
	gets 3 three
	# Bits, of slots 1 to 3.
	redis hset 'rlock_holds:{a}' slots 7 >/dev/null
	gets 4 four
	leaves four
	redis hset 'rlock_holds:{a}' slots 7 >/dev/null
	gets '4 5' four --take 2
	leaves four
	redis hset 'rlock_holds:{a}' slots 7 >/dev/null
	leaves two
	gets 2 two
	leaves one
	leaves two
	leaves three
	is_whole a 5
}

@test "a hold of an older version has no slot, and can be renewed and released" {
	local id=0123456789abcdef0123456789abcdef end
	gets 1 one
	end=$(($(server_ms) + 60000))
	redis hset 'rlock_holds:{a}' "$id" "old:0 $((end - 60000)) $end 2 a note" >/dev/null
	redis zadd 'rlock_ends:{a}' "$end" "$id:1" "$end" "$id:2" >/dev/null
	redis zadd '{a}:timeout' "$((end + 10000))" "$id:1" "$((end + 10000))" "$id:2" >/dev/null
	redis decrby a 2 >/dev/null
	gets 2 two
	run -0 rlock status --json a
	assert_equal "$(json 'sorted(holder["slots"] for holder in lock["holders"])')" '[[], [1], [2]]'
	run -0 rlock renew --owner old --lease 2m a
	run -0 rlock unlock --owner old a
	has_free a 3
	leaves one
	leaves two
	is_whole a 5
}

@test "what is in use is found again when the field that says so was deleted or says too much" {
	gets 1 one
	gets '2 3' two --take 2
	redis hdel 'rlock_holds:{a}' slots >/dev/null
	gets 4 three
	leaves one
	redis hset 'rlock_holds:{a}' slots xxxxx >/dev/null
	gets 1 four
	leaves three
	redis hset 'rlock_holds:{a}' slots '! ' >/dev/null
	leaves two
	leaves four
	gets '1 2 3 4 5' five --take 5
}

@test "the slot of a permit that was taken from its holder is given again, and not a second time when that holder ends" {
	hold_permit 5 a
	gets 2 one
	redis zrem '{a}:timeout' "$(redis zrange '{a}:timeout' 0 0)" >/dev/null
	redis incr a >/dev/null
	gets '3 4 5' two --take 3
	gets 1 three
	let_go
	ended_with 76
	leaves one
	gets 2 four
}

# ---- keys that were deleted or overwritten, and rights that are missing ----

@test "a side key of another type is named, and nothing is changed" {
	local key words
	for key in 'rlock_holds:{a}' '{a}:timeout'; do
		redis flushall >/dev/null
		redis set a 3 >/dev/null
		redis rpush "$key" x >/dev/null
		show_contents >before
		for words in 'sem -n --permits 3 a -- true' 'sem --permits 4 --resize a' 'unlock --force a'; do
			# shellcheck disable=SC2086
			run -78 rlock $words
			assert_output "rlock: a: not a lock of this kind: the key holds a semaphore whose side key $key holds a list: take another name"
		done
		assert_equal "$(show_contents)" "$(cat before)"
	done
}

@test "a permit stays held when its counter, ends or total are deleted or renamed: those are made anew" {
	local command
	for command in 'del a' 'del rlock_ends:{a}' 'del rlock_total:{a}'; do
		redis flushall >/dev/null
		mkfifo go
		in_background rlock sem --permits 2 -t 1s a -- sh -c 'read -r _ <go'
		wait_until 5 is_above "$PID" sh
		has_held a 1
		# shellcheck disable=SC2086
		redis $command >/dev/null
		let_pass 1.2
		run -75 rlock sem -n --permits 2 --take 2 a -- true
		run -0 rlock sem -n --permits 2 a -- true
		echo >go
		ended_with 0
		rm go
		is_whole a 2
	done
}

@test "a release that may not raise the counter changes nothing, and the permits come back when the lease ends" {
	rlock sem --permits 3 --take 2 --owner job --lease 3s a
	redis acl setuser default -incrby >/dev/null
	run -77 rlock unlock --owner job a
	redis acl setuser default +incrby >/dev/null
	assert_one_line '^rlock: a: .*it needs the ACL rule \+incrby'
	has_held a 2
	has_free a 1
	run -0 rlock sem -w 10s --permits 3 --take 3 a -- true
	is_whole a 3
}
