#!/usr/bin/env bats
# A lock on three servers, of which one after the other loses all data: the next renewal acquires it there again, whichever
# process sends it, whatever waits there, and with all that other callers read of a holder.

load ../lib/usual
load ../lib/quorum
load ../lib/inspecting

# Leases are of 9 s and less here: a server that has not run for so long does not count.
setup_file() {
	start_warm_servers 3
	wait_until 20 is_older 3 11
}

MAJORITY=(--quorum majority)

# field_on NUMBER NAME: of the only owner there.
field_on() {
	on "$1" redis hkeys "$2"
}

# has_field NUMBER NAME FIELD [COUNT]: that owner has the lock there, by so many holds.
has_field() {
	on "$1" redis_says "${4:-1}" hget "$2" "$3"
}

# record_on NUMBER NAME: the note of the only hold there, with its process.
record_on() {
	on "$1" redis hvals "rlock_holds:{$2}" | cut -d ' ' -f 5-
}

# lose NUMBER: that server loses all it has.
lose() {
	on "$1" redis flushall
}

# ---- by whichever process ----

@test "with the renewer killed each server that loses the lock has it again with its note, and stop and --remember work" {
	local field record number
	record_stderr rlock run "${MAJORITY[@]}" -t 3s --note nightly --remember 1h a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	field=$(field_on 1 a)
	record=$(record_on 1 a)
	kill -KILL "$(renewer_of "$PID")"
	for number in 1 2 3; do
		lose "$number"
		wait_until 10 has_field "$number" a "$field"
		assert_equal "$(record_on "$number" a)" "$record"
	done
	run -0 rlock stop "${MAJORITY[@]}" -w 20s a
	ended_with 124
	run -1 rlock status "${MAJORITY[@]}" a
	assert_line --index 1 --regexp '^  last held by nightly \('
	on_each redis_says 1 exists 'rlock_last:{a}'
}

@test "with one of three servers frozen the others remember the last holder" {
	freeze_server 2
	run -0 rlock run "${MAJORITY[@]}" -t 9s --connect-timeout 500ms --remember 1h a -- true
	thaw_server 2
	on 1 redis_says 1 exists 'rlock_last:{a}'
	on 3 redis_says 1 exists 'rlock_last:{a}'
}

@test "rlock renew acquires the lock of an owner again on each server that has lost it, with its note" {
	local field record number
	run -0 rlock lock "${MAJORITY[@]}" --owner ci --lease 9s --note nightly a
	field=$(field_on 1 a)
	record=$(record_on 1 a)
	for number in 1 2 3; do
		lose "$number"
		run -0 rlock renew "${MAJORITY[@]}" --owner ci --lease 9s a
		has_field "$number" a "$field"
		assert_equal "$(record_on "$number" a)" "$record"
	done
	run -0 rlock unlock "${MAJORITY[@]}" --owner ci a
	on_each no_keys
}

@test "rlock renew acquires the fixed lease of a process again on each server that has lost it, with its note" {
	# shellcheck disable=SC2016
	run -0 bash -c '
		rlock lock "$@" --pid $$ --lease 9s --note "nightly: 5 %" a || exit
		for number in 1 2 3; do
			redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" flushall >/dev/null
			rlock renew "$@" --pid $$ a >/dev/null || exit
			redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" --raw hvals "rlock_holds:{a}" | cut -d " " -f 5-
		done
		rlock unlock "$@" --pid $$ a' bash "${MAJORITY[@]}"
	assert_equal "$(sort -u <<<"$output" | grep -cE "^process\.1\.[0-9a-f]{16}(\.[0-9]+){3}- nightly: 5 %$")" 1
	assert_equal "${#lines[@]}" 3
	on_each no_keys
}

@test "rlock renew in a command with a fixed lease acquires its lock again on a server that has lost it, with its note" {
	# shellcheck disable=SC2016
	run -0 rlock run "${MAJORITY[@]}" --lease 9s --note nightly a -- bash -c '
		redis-cli -s "$BATS_FILE_TMPDIR/2/server/redis.sock" flushall >/dev/null
		rlock renew "$@" a >/dev/null || exit
		redis-cli -s "$BATS_FILE_TMPDIR/2/server/redis.sock" --raw hvals "rlock_holds:{a}"' bash "${MAJORITY[@]}"
	assert_output --regexp ' command\.1\.[0-9a-f]{16}(\.[0-9]+){3}- nightly$'
	on_each no_keys
}

# ---- whatever waits there ----

# regains_beside KIND WAITERS: a holder of that kind has a server again that lost the lock, while callers of the other kind wait.
regains_beside() {
	local field holder number
	record_stderr rlock "$1" "${MAJORITY[@]}" -t 6s a -- run_until_ended
	holder=$PID
	wait_until 5 has_child "$holder" run_until_ended
	field=$(field_on 1 a | grep -v '^mode$')
	for number in 1 2 3 4; do
		in_background rlock "$2" "${MAJORITY[@]}" -t 6s -w 60s a -- true
	done
	wait_until 10 has_waiting 4 a
	for number in 2 3; do
		lose "$number"
		# The next renewal but one comes after 4 s.
		wait_until 8 has_field "$number" a "$field"
	done
	end_commands
	ended_with 0 "$holder"
	stderr_is_empty
	while [ ${#BACKGROUND[@]} -gt 1 ]; do
		ended_with 0 "${BACKGROUND[1]}"
		BACKGROUND=("${BACKGROUND[0]}" "${BACKGROUND[@]:2}")
	done
	# A turn that no waiter needed lasts for a second.
	wait_until 5 on_each no_keys
}

# has_waiting COUNT NAME: so many callers listen for it.
has_waiting() {
	[ "$(on 1 redis pubsub channels "*{$2}:*" | grep -cvE ':rlock$')" -ge "$1" ]
}

@test "a holder has a server again that lost the lock, though four callers wait for it" {
	regains_beside run run
}

@test "a writer has a server again that lost its lock, though four writers wait for it" {
	regains_beside write write
}

@test "the holder of a fair lock has a server again that lost it, though four callers wait in the queue" {
	regains_beside fair fair
}

@test "a writer has a server again that lost its lock, though four readers wait for it" {
	regains_beside write read
}

@test "a reader has a server again that lost its lock, though four writers wait for it" {
	regains_beside read write
}

# ---- within each other ----

@test "a nested call for several names, one of which it re-entered, has all of them again on a server that lost them" {
	local outer inner
	in_background rlock run "${MAJORITY[@]}" -t 6s outer -- rlock run "${MAJORITY[@]}" -t 6s outer inner -- run_until_ended
	wait_until 5 on_each is_held inner
	outer=$(field_on 1 outer)
	inner=$(field_on 1 inner)
	lose 2
	wait_until 10 has_field 2 inner "$inner"
	wait_until 10 has_field 2 outer "$outer" 2
	# Each hold is there once, and released once.
	end_commands
	ended_with 0
	on_each no_keys
}

@test "a nested call that begins when a server has lost the lock has it there as the outer call has, which regains it beside it" {
	local field
	# shellcheck disable=SC2016
	in_background rlock run "${MAJORITY[@]}" -t 6s a -- bash -c '
		redis-cli -s "$BATS_FILE_TMPDIR/3/server/redis.sock" flushall >/dev/null
		exec rlock run "$@" -t 9s a -- run_until_ended' bash "${MAJORITY[@]}"
	wait_until 5 on 1 is_held a
	field=$(field_on 1 a)
	wait_until 10 has_field 1 a "$field" 2
	wait_until 10 has_field 3 a "$field" 2
	end_commands
	ended_with 0
	on_each no_keys
}

@test "a read lock within a write lock: a server that lost both has both again, whichever is renewed first" {
	local first second
	for first in 9s 3s; do
		[ "$first" = 3s ] && second=9s || second=3s
		rm -f "$BATS_TEST_TMPDIR/end-commands"
		in_background rlock write "${MAJORITY[@]}" -t "$first" a -- \
			rlock read "${MAJORITY[@]}" -t "$second" a -- run_until_ended
		wait_until 5 on_each redis_says 3 hlen a
		lose 2
		wait_until 15 on 2 redis_says 3 hlen a
		assert_equal "$(on 2 redis hget a mode)" write
		same_reply_on_all hkeys a
		end_commands
		ended_with 0
		on_each no_keys
	done
}
