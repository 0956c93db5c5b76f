#!/usr/bin/env bats
# A lock on three servers that lose all their data one after the other: the next renewal acquires the lock there again, whichever process
# sends it and whoever waits there, and restores what other callers read about the holder.

load ../lib/usual
load ../lib/quorum
load ../lib/inspecting

# A server that has run for a shorter time than the lease does not count, so leases are 9 s or less here.
setup_file() {
	local verb
	start_warm_servers 3
	# Load the scripts of the other kinds, too: one server that does not know a script is not waited for.
	for verb in fair read write; do RLOCK_URL=$(urls_of 1 2 3) rlock "$verb" -t 9s warm -- true; done
	wait_until 20 is_older 3 11
}

MAJORITY=(--quorum majority)

# field_on NUMBER NAME: prints the field of the lock's only owner on this server.
field_on() {
	on "$1" redis hkeys "$2"
}

# has_field NUMBER NAME FIELD [COUNT]: whether this owner holds the lock on this server, with this hold count (1).
has_field() {
	on "$1" redis_says "${4:-1}" hget "$2" "$3"
}

# has_owner_other_than NUMBER NAME OWNER: whether the lock is held on this server, by another owner.
has_owner_other_than() {
	on "$1" is_held "$2" && ! on "$1" redis hkeys "$2" | grep -q "^$3"
}

# record_on NUMBER NAME: prints the note and the process of the only hold on this server.
record_on() {
	on "$1" redis hvals "rlock_holds:{$2}" | cut -d ' ' -f 5-
}

# lose NUMBER: makes this server lose all its data.
lose() {
	on "$1" redis flushall
}

# ---- acquired again by each process that renews ----

@test "after the renewer was killed rlock acquires the lock again, with its note, on a server that lost it; stop and --remember work" {
	local field record number
	record_stderr rlock run "${MAJORITY[@]}" -t 6s --grace 300ms --note nightly --remember 1h a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	field=$(field_on 1 a)
	record=$(record_on 1 a)
	! has_renewer "$PID" || kill -KILL "${RENEWERS[@]}"
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

@test "with one server of three frozen --remember works on the others" {
	freeze_server 2
	run -0 rlock run "${MAJORITY[@]}" -t 30s --connect-timeout 2s --remember 1h a -- true
	thaw_server 2
	on 1 redis_says 1 exists 'rlock_last:{a}'
	on 3 redis_says 1 exists 'rlock_last:{a}'
}

@test "a server that froze while the lock was waited for remembers the holder as well" {
	local verb fields
	for verb in run fair write; do
		fields=(other:1 1)
		[ "$verb" != write ] || fields=(mode write other:1:write 1)
		on_each redis hset "$verb" "${fields[@]}" >/dev/null
		on_each redis pexpire "$verb" 18000 >/dev/null
		in_background rlock "$verb" "${MAJORITY[@]}" -t 9s --remember 1h "$verb" -- run_until_ended
	done
	wait_until 5 on 2 has_waiters run
	wait_until 5 on 2 has_waiters write
	wait_until 5 on 2 has_queue_length fair 1
	freeze_server 2
	for verb in run fair write; do wait_until 30 has_owner_other_than 1 "$verb" other:1; done
	thaw_server 2
	for verb in run fair write; do wait_until 10 has_owner_other_than 2 "$verb" other:1; done
	end_commands
	all_ended_with 0
	for verb in run fair write; do on_each redis_says 1 exists "rlock_last:{$verb}"; done
}

# renew_on NUMBER NAME FIELD: asserts that rlock renew succeeds, and acquires the lock again on this server. rlock does not wait for one
# server that answers later than the others: then try again.
renew_on() {
	local try
	for try in 1 2 3 4 5; do
		run -0 rlock renew "${MAJORITY[@]}" --owner ci --lease 30s "$2"
		! has_field "$@" || break
	done
	has_field "$@"
}

@test "rlock renew acquires the lock of an owner again on each server that has lost it, with its note" {
	local field record number
	run -0 rlock lock "${MAJORITY[@]}" --owner ci --lease 30s --note nightly a
	field=$(field_on 1 a)
	record=$(record_on 1 a)
	for number in 1 2 3; do
		lose "$number"
		renew_on "$number" a "$field"
		assert_equal "$(record_on "$number" a)" "$record"
	done
	run -0 rlock unlock "${MAJORITY[@]}" --owner ci a
	wait_until 5 on_each no_keys
}

@test "rlock renew acquires the fixed lease of a process again on each server that has lost it, with its note" {
	# shellcheck disable=SC2016
	run -0 bash -c '
		rlock lock "$@" --pid $$ --lease 30s --note "nightly: 5 %" a || exit
		for number in 1 2 3; do
			ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" flushall >/dev/null
			for try in 1 2 3 4 5; do
				rlock renew "$@" --pid $$ a >/dev/null || exit
				[ "$(ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" exists a)" = 0 ] || break
			done
			redis-cli -s "$BATS_FILE_TMPDIR/$number/server/redis.sock" --raw hvals "rlock_holds:{a}" | cut -d " " -f 5-
		done
		rlock unlock "$@" --pid $$ a' bash "${MAJORITY[@]}"
	assert_equal "$(sort -u <<<"$output" | grep -cE "^process\.plain\.1\.[0-9a-f]{16}(\.[0-9]+){3}- nightly: 5 %$")" 1
	assert_equal "${#lines[@]}" 3
	wait_until 5 on_each no_keys
}

@test "rlock renew in a command with a fixed lease acquires its lock again on a server that has lost it, with its note" {
	# shellcheck disable=SC2016
	run -0 rlock run "${MAJORITY[@]}" --lease 30s --note nightly a -- bash -c '
		ask_redis "$BATS_FILE_TMPDIR/2/server/redis.sock" flushall >/dev/null
		for try in 1 2 3 4 5; do
			rlock renew "$@" a >/dev/null || exit
			[ "$(ask_redis "$BATS_FILE_TMPDIR/2/server/redis.sock" exists a)" = 0 ] || break
		done
		redis-cli -s "$BATS_FILE_TMPDIR/2/server/redis.sock" --raw hvals "rlock_holds:{a}"' bash "${MAJORITY[@]}"
	assert_output --regexp ' command\.plain\.1\.[0-9a-f]{16}(\.[0-9]+){3}- nightly$'
	wait_until 5 on_each no_keys
}

# ---- acquired again although callers wait ----

# regains_beside KIND WAITERS: on each server that lost the lock, a holder of this kind must acquire it again while callers of the kind
# WAITERS wait.
regains_beside() {
	local field holder number
	record_stderr rlock "$1" "${MAJORITY[@]}" -t 6s --grace 300ms a -- run_until_ended
	holder=$PID
	wait_until 5 has_child "$holder" run_until_ended
	field=$(field_on 1 a | grep -v '^mode$')
	for number in 1 2 3 4; do
		in_background rlock "$2" "${MAJORITY[@]}" -t 6s -w 60s a -- true
	done
	wait_until 10 has_waiting 4 a
	for number in 2 3; do
		lose "$number"
		# Renewals are 2 s apart, so the second one from now comes within 4 s.
		wait_until 8 has_field "$number" a "$field"
	done
	end_commands
	ended_with 0 "$holder"
	stderr_is_empty
	while [ ${#BACKGROUND[@]} -gt 1 ]; do
		ended_with 0 "${BACKGROUND[1]}"
		BACKGROUND=("${BACKGROUND[0]}" "${BACKGROUND[@]:2}")
	done
	# Poll, since the reservation for a waiter that has ended lasts for a second.
	wait_until 5 on_each no_keys
}

# has_waiting COUNT NAME: whether at least COUNT callers subscribe to the lock's channels.
has_waiting() {
	[ "$(on 1 redis pubsub channels "*{$2}:*" | grep -cvE ':rlock$')" -ge "$1" ]
}

@test "a holder acquires the lock again on a server that lost it although four callers wait for it" {
	regains_beside run run
}

@test "a writer acquires the lock again on a server that lost it although four writers wait for it" {
	regains_beside write write
}

@test "the holder of a fair lock acquires it again on a server that lost it although four callers are queued" {
	regains_beside fair fair
}

@test "a writer acquires the lock again on a server that lost it although four readers wait for it" {
	regains_beside write read
}

@test "a reader acquires the lock again on a server that lost it although four writers wait for it" {
	regains_beside read write
}

# ---- nested calls ----

@test "a nested call for several names, one of them re-entered, acquires all of them again on a server that lost them" {
	local outer inner
	in_background rlock run "${MAJORITY[@]}" -t 6s --grace 300ms outer -- \
		rlock run "${MAJORITY[@]}" -t 6s --grace 300ms outer inner -- run_until_ended
	wait_until 5 on_each is_held inner
	outer=$(field_on 1 outer)
	inner=$(field_on 1 inner)
	lose 2
	wait_until 10 has_field 2 inner "$inner"
	wait_until 10 has_field 2 outer "$outer" 2
	# Each hold must have been restored only once, so that one release removes it.
	end_commands
	ended_with 0
	wait_until 5 on_each no_keys
}

@test "a nested call that begins after a server lost the lock holds it there next to the outer call, which acquires it again" {
	local field
	# shellcheck disable=SC2016
	in_background rlock run "${MAJORITY[@]}" -t 6s --grace 300ms a -- bash -c '
		redis-cli -s "$BATS_FILE_TMPDIR/3/server/redis.sock" flushall >/dev/null
		exec rlock run "$@" -t 9s a -- run_until_ended' bash "${MAJORITY[@]}"
	wait_until 5 on 1 is_held a
	field=$(field_on 1 a)
	wait_until 10 has_field 1 a "$field" 2
	wait_until 10 has_field 3 a "$field" 2
	end_commands
	ended_with 0
	wait_until 5 on_each no_keys
}

@test "a write lock and a read lock inside it are both acquired again on a server that lost them, whichever is renewed first" {
	local first second
	for first in 9s 6s; do
		[ "$first" = 6s ] && second=9s || second=6s
		rm -f "$BATS_TEST_TMPDIR/end-commands"
		in_background rlock write "${MAJORITY[@]}" -t "$first" --grace 300ms a -- \
			rlock read "${MAJORITY[@]}" -t "$second" --grace 300ms a -- run_until_ended
		wait_until 5 on_each redis_says 3 hlen a
		lose 2
		wait_until 15 on 2 redis_says 3 hlen a
		assert_equal "$(on 2 redis hget a mode)" write
		same_reply_on_all hkeys a
		end_commands
		ended_with 0
		wait_until 5 on_each no_keys
	done
}
