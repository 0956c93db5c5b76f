#!/usr/bin/env bats
# Slots: a holder of a permit has a number from 1 to the total that no other holder has, for "any one of three machines". Where
# it stands on the server: rlock-protocol(7).

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing
load ../lib/permits
load ../lib/scripting
load ../lib/inspecting
load ../lib/proxying

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	redis config set maxmemory 0 >/dev/null
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

# in_use: the field that says which slots are in use.
in_use() {
	redis hget 'rlock_holds:{a}' slots
}

# ---- which slot ----

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

@test "without a command the slot is printed, and given to another only after the release" {
	gets 1 one
	gets 2 two
	gets 3 three
	leaves one
	leaves two
	gets 1 four
	gets 2 five
	gets 4 six
	local owner
	for owner in three four five six; do leaves "$owner"; done
	is_whole a 5
}

@test "a lock for a process prints its slot, and has it until the process ends" {
	start_script 'rlock sem --permits 2 --pid $$ a >slot; echo got >got; until_let_go'
	wait_until 5 file_exists got
	assert_equal "$(cat slot)" 1
	run -0 rlock sem --permits 2 a -- printenv RLOCK_SLOT
	assert_output 2
	let_go
	ended_with 0
	wait_until 5 is_whole a 2
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

@test "of several semaphores each has slots of its own, a line for each name" {
	rlock sem --permits 3 --owner one --lease 1m b >/dev/null
	run -0 rlock sem --permits 3 --take 2 a b -- printenv RLOCK_SLOT
	assert_output '1 2
2 3'
	run -0 rlock sem --permits 3 --owner two --lease 1m b a
	assert_output '2
1'
}

@test "a nested call has another slot, and a lock inside has none" {
	run -0 rlock sem --permits 3 a -- sh -c '
		rlock sem --permits 3 a -- printenv RLOCK_SLOT
		rlock run b -- printenv RLOCK_SLOT || echo none
		echo "$RLOCK_SLOT"'
	assert_output '2
none
1'
	is_whole a 3
}

@test "twenty callers for four permits never have one slot at the same time" {
	local i
	for ((i = 0; i < 20; i++)); do
		in_background rlock sem --wait 60s --permits 4 a -- sh -c '
			[ "$RLOCK_SLOT" -le 4 ] && mkdir "slot-$RLOCK_SLOT" && rmdir "slot-$RLOCK_SLOT" || echo "$RLOCK_SLOT" >>shared'
	done
	all_ended_with 0
	[ ! -e shared ] || fail "shared: $(cat shared)"
	is_whole a 4
}

# ---- holders that are gone ----

# have_ended NAME COUNT: the leases of so many permits are over.
have_ended() {
	[ "$(redis zcount "rlock_ends:{$1}" -inf "$(server_ms)")" -ge "$2" ]
}

@test "the slot of a dead holder is given again when its lease is over, and not before" {
	hold_permit 5 a -t 2s
	kill_holder "$PID"
	gets 2 one
	wait_until 10 have_ended a 1
	gets 1 two
}

# end_leases: those of the owners that are called "dead" are over, sooner than they would be.
end_leases() {
	redis eval '
		for _, id in ipairs(redis.call("ZRANGE", KEYS[1], 0, -1)) do
			local record = redis.call("HGET", KEYS[3], string.match(id, "^%x+"))
			if string.find(record, "^dead") then
				redis.call("ZADD", KEYS[1], 1000, id)
				redis.call("ZADD", KEYS[2], 11000, id)
			end
		end' 3 'rlock_ends:{a}' '{a}:timeout' 'rlock_holds:{a}' >/dev/null
}

# Twenty owners, for a minute.
many_acquire() {
	local i
	for ((i = 0; i < 20; i++)); do
		rlock sem -n --permits 22 --lease 1m --owner "dead-$i" a >/dev/null
	done
}

@test "the slots of many leases that ended at once are given again, and those of live holders are not" {
	rlock sem --permits 22 --resize a
	gets 1 live
	many_acquire
	end_leases
	run -0 rlock sem -n --permits 22 --lease 1m --take 3 --owner two a
	assert_output '2 3 4'
	assert_equal "$(in_use)" '?'
}

@test "a permit that --at-least keeps has its slot until then" {
	run -0 rlock sem --permits 5 --at-least 60s a -- printenv RLOCK_SLOT
	assert_output 1
	gets 2 one
	rlock unlock --force a
	gets 1 two
}

@test "a slot is free when its holder is broken by force, and the others stay" {
	gets 1 one
	gets '2 3' two --take 2
	gets 4 three
	run -0 rlock unlock --force --holder two:0 a
	gets 2 four
	gets '3 5' five --take 2
}

@test "of many owners whose leases ended at once nothing is left" {
	rlock sem --permits 22 --resize a
	gets 1 live
	many_acquire
	end_leases
	gets 2 one
	assert_equal "$(redis hkeys 'rlock_holds:{a}' | grep -c ':last$')" 2
	leaves live
	leaves one
	is_whole a 22
	many_acquire
	end_leases
	gets 1 one
	leaves one
	is_whole a 22
}

# ---- the total ----

@test "with a smaller total the slots above it stay with their holders, and new ones get the lowest" {
	gets '1 2' one --take 2
	gets 3 two
	gets 4 three
	rlock sem --permits 2 --resize a
	leaves one
	run -75 rlock sem -n --permits 2 a -- true
	leaves two
	run -0 rlock sem -n --permits 2 a -- printenv RLOCK_SLOT
	assert_output 1
	run -0 rlock status a
	assert_line --regexp '^  holder +4 '
	leaves three
	run -0 rlock sem -n --permits 2 --take 2 a -- printenv RLOCK_SLOT
	assert_output '1 2'
}

# ---- other clients ----

@test "Java's permits have no slot" {
	redis set a 5 >/dev/null
	java_takes_permit a 0123456789abcdef 922337203685477
	gets 1 one
	run -0 rlock status a
	assert_line --regexp '^  holder +1 '
	assert_line --regexp '^  holder +- +- +1 +redisson '
	run -0 rlock status --json a
	assert_equal "$(json '[holder["slots"] for holder in lock["holders"]]')" '[[1], []]'
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

@test "status shows the slots of each holder, and none of a lock" {
	gets '1 2' one --take 2
	gets 3 two
	run -0 rlock status a
	assert_line --regexp '^ +SLOT +FOR +TTL '
	assert_line --regexp '^  holder +1 2 '
	assert_line --regexp '^  holder +3 '
	run -0 rlock status --json a
	assert_equal "$(json 'sorted(holder["slots"] for holder in lock["holders"])')" '[[1, 2], [3]]'
	run -0 rlock run b -- rlock status b
	refute_output --partial SLOT
	run -0 rlock run b -- rlock status --json b
	assert_equal "$(json 'lock["holders"][0]["slots"]')" '[]'
}

# ---- faults ----

@test "a caller whose first reply was lost has the slot that it got by it" {
	local take
	for take in 1 2; do
		start_proxy
		proxy drop-reply 'rlock_total:{a}'
		run -0 rlock sem --permits 5 --wait 5s --take "$take" a -- printenv RLOCK_SLOT
		assert_output "$(seq -s ' ' "$take")"
		faults_happened
		proxy quit
	done
	is_whole a 5
}

@test "a release on a full server frees the slot" {
	gets 1 one
	gets 2 two
	redis config set maxmemory 1 >/dev/null
	run -0 rlock unlock --owner one a
	redis config set maxmemory 0 >/dev/null
	gets 1 three
}

@test "a release that may not write which slots are in use frees the slot" {
	gets 1 one
	gets 2 two
	redis acl setuser default -hset >/dev/null
	run -0 rlock unlock --owner one a
	redis acl setuser default +hset >/dev/null
	gets 1 three
	gets 3 four
}

@test "what is in use is found again when the field that says so was deleted or says too much" {
	gets 1 one
	gets '2 3' two --take 2
	redis hdel 'rlock_holds:{a}' slots >/dev/null
	gets 4 three
	leaves one
	redis hset 'rlock_holds:{a}' slots ooo >/dev/null
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

@test "the field of the slots in use is shorter with each release, and goes with the last one" {
	gets '1 2 3' one --take 3
	gets 4 two
	assert_equal "$(in_use)" '?'
	leaves one
	assert_equal "$(in_use)" '8'
	leaves two
	is_whole a 5
}
