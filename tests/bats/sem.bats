#!/usr/bin/env bats
# Semaphores: keys on the server, which calls get permits, permits of dead holders, totals, waiters, slots, overwritten keys, and status.
# model.bats covers random sequences with Java's permits and faults.

load ../lib/usual
load ../lib/contenders
load ../lib/permits
load ../lib/inspecting

@test "a permit is stored as Redisson does, in the set and in the counter, and each release is published" {
	local id score now
	record_messages 'redisson_sc:{a}'
	hold_permit 3 a -t 30s
	has_free_permits a 2
	assert_equal "$(list_keys | xargs)" 'a rlock_ends:{a} rlock_holds:{a} rlock_total:{a} {a}:timeout'
	id=$(redis zrange '{a}:timeout' 0 -1)
	[[ $id =~ ^[0-9a-f]{32}:1$ ]]
	score=$(redis zscore '{a}:timeout' "$id")
	now=$(server_ms)
	# The score in Redisson's set is the end of the lease plus 10 s, since a Java client's clock can be ahead.
	assert_between $((now + 30000)) "$score" $((now + 40000))
	assert_equal "$score" $(($(redis zscore 'rlock_ends:{a}' "$id") + 10000))
	ttl_between 15000 'rlock_holds:{a}' 30000
	assert_equal "$(redis pttl a)" -1
	run -0 rlock sem --permits 3 --take 2 a -- true
	end_commands
	ended_with 0
	has_all_permits a 3
	# Each message is the number of free permits. The first one comes from creating the counter, as RSemaphore.trySetPermits does.
	run -0 show_messages 'redisson_sc:{a}'
	assert_equal "$(awk '{ print $2 }' <<<"$output" | xargs)" '2 2 3'
}

@test "there are at most as many holders as permits, and a released permit is available to the next caller" {
	hold_permit 2 a
	hold_permit 2 a
	run -75 rlock sem -n --permits 2 a -- true
	assert_output ''
	run_timed_out 75 env CI=true rlock sem --wait 3s --permits 2 a -- true
	assert_line --regexp '^rlock: a: waiting for one of 2 permits, one held by [^ ]+@.* run_until_ended, held for [0-9]+s$'
	assert_line --regexp '^rlock: a: timed out after 3s: 2 permits in all, one held by [^ ]+@.* run_until_ended \('
	end_commands
	all_ended_with 0
	run -0 rlock sem -n --permits 2 a -- true
	has_all_permits a 2
}

@test "several semaphores are acquired together or not at all" {
	hold_permit 1 b
	run -75 rlock sem -n --permits 1 a b -- true
	has_all_permits a 1
}

# ---- dead holders, and expired permits ----

@test "a repeated request for two permits acquires only the permit that Java has reclaimed" {
	local request id
	record_requests
	run -0 rlock sem --permits 5 --take 2 --owner ci-1 --lease 1m a
	mapfile -t request < <(last_request '#request > 12')
	has_free_permits a 3
	id=$(redis zrange '{a}:timeout' 0 0)
	redis zrem '{a}:timeout' "$id" >/dev/null
	redis incrby a 1 >/dev/null
	redis "${request[@]}" >/dev/null
	has_held_permits a 2
	has_free_permits a 3
}

@test "renew does not shorten a lease, and does not revive an expired permit although others are held" {
	run -0 rlock sem --permits 2 --owner ci-1 --lease 1m a
	run -0 rlock renew --owner ci-1 --lease 2s a
	assert_output --regexp '^(1m00s|5[0-9]s)$'
	run -0 rlock sem --permits 2 --owner ci-2 --lease 1s a
	pause_for 1.01
	run -1 rlock renew --owner ci-2 a
	run -1 rlock unlock --owner ci-2 a
	run -0 rlock sem -n --permits 2 a -- true
}

@test "a dead holder's permit is free again when its lease ends, or, for Java's permit, 5 s after its deadline" {
	local deadline_ms
	start_holder h sem --permits 2 -t 20s a
	kill_contender h
	# Add a permit of Redisson's whose deadline is in 2 s. It must be kept for 5 s more, since the clock of Redisson's client may
	# be behind.
	deadline_ms=$(($(server_ms) + 2000))
	redis eval '
		redis.call("decrby", KEYS[1], 1)
		redis.call("zadd", KEYS[2], ARGV[1], "0123456789abcdef")' 2 a '{a}:timeout' "$deadline_ms" >/dev/null
	run -75 rlock sem -n --permits 2 a -- true
	run -0 rlock sem -w 30s --permits 2 a -- true
	(($(server_ms) >= deadline_ms + 5000))
	has_free_permits a 1
	run -0 rlock sem -w 40s --permits 2 --take 2 a -- true
	has_all_permits a 2
}

@test "a waiter does not poll in a loop after Java has reclaimed the permit of a dead holder" {
	local permit
	rlock sem --permits 2 --owner alive --lease 1m a
	rlock sem --permits 2 --owner dead --lease 1s a
	permit=$(redis zrange '{a}:timeout' 0 0)
	wait_until 5 eval '[ "$(redis zscore "rlock_ends:{a}" "$permit")" -lt "$(server_ms)" ]'
	# Do as Java does when it reclaims the permit and acquires it.
	redis zrem '{a}:timeout' "$permit" >/dev/null
	redis zadd '{a}:timeout' $(($(server_ms) + 60000)) 0123456789abcdef >/dev/null
	in_background rlock sem -w 1m --permits 2 a -- true
	wait_until 5 has_waiters a 1
	redis config resetstat >/dev/null
	pause_for 1
	assert_between 0 "$(calls_of evalsha)" 5
	has_waiters a 1
	is_running "$PID"
}

# ---- the total ----

@test "a total other than the stored one changes nothing: one warning names both, and why there are too few permits" {
	local permits
	redis set a 2 >/dev/null
	for permits in 3 1; do
		run -0 rlock sem --permits $permits a -- true
		assert_one_line "^rlock: a: has 2 permits in all, and --permits says $permits; to change it: rlock sem --permits $permits --resize a\$"
		has_all_permits a 2
	done
	run -0 rlock sem --permits 2 a -- true
	assert_output ''
	run -75 rlock sem --permits 5 --take 3 -n -v a -- true
	assert_line 'rlock: a: busy: the semaphore has 2 permits in all, and 3 must be free; --resize gives it more'
}

@test "after the total was reduced, waiters wait on until enough permits were released" {
	start_holder one sem --permits 2 a
	start_holder two sem --permits 2 a
	queue_contender w sem --permits 2 a
	run -0 rlock sem --permits 1 --resize a
	has_free_permits a -1
	finish_contenders one
	has_free_permits a 0
	stays_true_for 1 are_waiting w
	finish_contenders two
	enters_when_woken w
	finish_contenders w
	has_all_permits a 1
}

# ---- waiters ----

@test "waiters are woken in the order in which they came, also by a release of Java" {
	start_holder h sem --permits 1 a
	for contender in r1 r2 r3; do
		queue_contender $contender sem --permits 1 a
	done
	# Stop the later waiters, which could otherwise try at the same moment.
	stop_waiters "${PIDS[r2]}" "${PIDS[r3]}"
	redis eval 'redis.call("incrby", KEYS[1], 1) redis.call("publish", KEYS[2], 1)' 2 a 'redisson_sc:{a}' >/dev/null
	enters_when_woken r1
	continue_waiters "${PIDS[r2]}"
	are_waiting r2 r3
	finish_contenders r1
	enters_when_woken r2
	continue_waiters "${PIDS[r3]}"
	are_waiting r3
	finish_contenders h
	enters_when_woken r3
	finish_contenders r2 r3
	has_all_permits a 2
}

@test "a waiter for several permits gets them although other callers come and take one each" {
	redis set a 1 >/dev/null
	redis set 'rlock_turn:{a}' "$(server_ms)000 0123456789abcdef0123456789abcdef" >/dev/null
	run_timed_out 75 rlock sem --permits 1 -w 100ms a -- true
	assert_output 'rlock: a: timed out after 100ms: kept for the next waiter'
	redis flushall >/dev/null
	start_holder h sem --permits 2 a
	queue_contender w sem --permits 2 --take 2 a
	pause_for 2.1
	for _ in 1 2 3; do
		in_background sh -c 'until [ -e in-w ]; do rlock sem --permits 2 a -- true; done'
	done
	finish_contenders h
	wait_until_entered w 10
	end_commands
	all_ended_with 0
	has_all_permits a 2
}

# ---- slots ----

# gets SLOTS OWNER [OPTION...]: OWNER must acquire permits of "a", which has five, and get these slots.
gets() {
	assert_equal "$(rlock sem -n --permits 5 --lease 1m --owner "${@:2}" a)" "$1"
}

@test "a release does not change how many permits are reserved for a waiter that needs several" {
	local turn left
	start_holder h1 sem --permits 3 a
	start_holder h2 sem --permits 3 a
	queue_contender w sem --permits 3 --take 3 a
	# Wake the waiter as Java's releases do: from its next attempt after 2 s on it reserves the free permit.
	wait_until 20 eval 'redis publish "redisson_sc:{a}" 1 >/dev/null; turn=$(redis get "rlock_turn:{a}") && [[ $turn = *" 3" ]]'
	# The waiter must not reserve the permits itself.
	stop_waiters "${PIDS[w]}"
	redis set 'rlock_turn:{a}' "$turn" >/dev/null
	finish_contenders h1
	# On a slow machine the turn may be over.
	left=$(redis get 'rlock_turn:{a}')
	[ -z "$left" ] || assert_equal "$left" "$turn"
	# The release has given the waiter the turn, and not this test.
	[ "$(redis ttl 'rlock_turn:{a}')" -ne -1 ]
	continue_waiters "${PIDS[w]}"
	finish_contenders h2
	wait_until 10 file_exists in-w
	finish_contenders w
	has_all_permits a 3
}

@test "each permit gets the lowest free slot; RLOCK_SLOT separates several by blanks, and they need not be consecutive" {
	run -0 rlock sem --permits 5 --take 3 a -- printenv RLOCK_SLOT
	assert_output '1 2 3'
	gets 1 one
	gets 2 two
	run -0 rlock sem --permits 5 a -- printenv RLOCK_SLOT
	assert_output 3
	rlock unlock --owner one a
	gets '1 3 4' three --take 3
	rlock unlock --owner two a
	# Give the field "slots" another format. The slots in use must then be found from the records.
	redis hset 'rlock_holds:{a}' slots 7 >/dev/null
	gets 2 four
	redis hdel 'rlock_holds:{a}' slots >/dev/null
	gets 5 five
	rlock unlock --force a
	has_all_permits a 5
}

@test "the slot of a permit that its holder has lost is given to another one, and stays there when the old holder ends" {
	hold_permit 5 a
	gets 2 one
	redis zrem '{a}:timeout' "$(redis zrange '{a}:timeout' 0 0)" >/dev/null
	redis incr a >/dev/null
	gets '3 4 5' two --take 3
	gets 1 three
	end_commands
	ended_with 76
	rlock unlock --owner one a
	gets 2 four
}

# ---- keys that were overwritten, and rights that are missing ----

@test "a related key of another type is named, and nothing is changed" {
	local key words
	for key in 'rlock_holds:{a}' '{a}:timeout'; do
		redis flushall >/dev/null
		redis set a 3 >/dev/null
		redis rpush "$key" x >/dev/null
		digest_keys >before
		for words in 'sem -n --permits 3 a -- true' 'sem --permits 4 --resize a' 'unlock --force a'; do
			# shellcheck disable=SC2086
			run -78 rlock $words
			assert_output "rlock: a: not a lock of this kind: the key holds a semaphore whose side key $key holds a list; take another name"
		done
		digest_keys | diff before -
	done
}

@test "a release without the right to increment the counter changes nothing, and the permits are free when the lease ends" {
	rlock sem --permits 3 --take 2 --owner job --lease 12s a
	redis acl setuser default -incrby >/dev/null
	run rlock unlock --owner job a
	redis acl setuser default +incrby >/dev/null
	assert_equal "$status" 77
	assert_one_line '^rlock: a: .*it needs the ACL rule \+incrby'
	has_held_permits a 2
	has_free_permits a 1
	run -0 rlock sem -w 40s --permits 3 --take 3 a -- true
	has_all_permits a 3
}

# ---- status, unlock --force ----

@test "status shows the total, the free permits, the holders, and permits without a holder" {
	start_holder h sem --permits 5 --take 2 --note 'two licences' a
	redis zadd '{a}:timeout' 922337203685477 0123456789abcdef >/dev/null
	redis decrby a 2 >/dev/null
	queue_contender w sem --permits 5 --take 2 a
	run -0 rlock status a
	assert_line --index 0 'a: semaphore, held, 1 of 5 permits free'
	assert_line --regexp '^  holder +1 2 +[0-9.]+s +[0-9]+s +2 +rlock +two licences +'
	assert_line --regexp '^  holder +- +- +1 +redisson +30313233343536373839616263646566$'
	assert_line --regexp '^  1 without a record of a holder: '
	assert_line --regexp '^  1 waiter of rlock, the first for '
	run -0 rlock status --json a
	assert_equal "$(json 'lock["kind"], lock["permits"], lock["holder_count"], lock["waiter_count"]')" \
		"('sem', {'total': 5, 'free': 1, 'without_holder': 1}, 2, 1)"
}

@test "unlock --force frees all permits, with --holder those of one owner, and deletes a semaphore that is free" {
	rlock sem --permits 4 --owner one --lease 1m a
	rlock sem --permits 4 --take 2 --owner two --lease 1m a
	run -0 rlock unlock --force --holder two:0 a
	has_free_permits a 3
	run -1 rlock unlock --force --holder three:0 a
	run -78 rlock unlock --force --mode plain a
	run -0 rlock unlock --force a
	has_all_permits a 4
	run -1 rlock status a
	assert_output 'a: semaphore, free, 4 of 4 permits free'
	run -78 rlock run -n a -- true
	run -1 rlock unlock --force --holder one:0 a
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: not held: the free semaphore was deleted$'
	no_keys
	run -1 rlock unlock --force a
	run -0 rlock run -n a -- true
}

@test "a call for a lock under the name of a semaphore says that, and how to acquire a permit or delete it" {
	local verb
	rlock sem --permits 2 a -- true
	for verb in run fair read write; do
		run -78 rlock "$verb" b a -- touch ran
		assert_one_line '^rlock: a is a semaphore; acquire a permit by rlock sem, or delete it; try: rlock unlock --force a$'
	done
	assert [ ! -e ran ]
}
