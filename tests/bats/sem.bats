#!/usr/bin/env bats
# Semaphores: what stands on the server, which calls get permits, what happens to permits of holders that are gone, totals,
# waiters, and what status says. Slots and overwritten keys: sem_slots.bats; holds, totals and Java's permits in all orders, and
# faults: model.bats.

load ../lib/usual
load ../lib/sharing
load ../lib/permits
load ../lib/scripting
load ../lib/inspecting

@test "a permit is a member of the set that Redisson has, and one less in the counter" {
	local id score now
	hold_permit 3 a -t 30s
	assert_equal "$(list_keys)" 'a
rlock_ends:{a}
rlock_holds:{a}
rlock_total:{a}
{a}:timeout'
	has_free a 2
	id=$(redis zrange '{a}:timeout' 0 -1)
	[[ $id =~ ^[0-9a-f]{32}:1$ ]]
	assert_equal "$(redis hkeys 'rlock_holds:{a}' | grep -v ':last$' | sort)" "${id%:1}
slots"
	assert_equal "$(redis hkeys 'rlock_holds:{a}' | grep -cxE "$UUID:$PID:last")" 1
	score=$(redis zscore '{a}:timeout' "$id")
	now=$(server_ms)
	# The lease, and 10 s for a Java client's clock.
	((score > now + 30000 && score <= now + 40000))
	((score == $(redis zscore 'rlock_ends:{a}' "$id") + 10000))
	ttl_between 15000 'rlock_holds:{a}' 30000
	ttl_between 40000 'rlock_ends:{a}' 45000
	assert_equal "$(redis pttl a)" -1
	let_go
	ended_with 0
	is_whole a 3
}

@test "no more holders than there are permits have one, and a permit that is released is free for the next one" {
	hold_permit 2 a
	hold_permit 2 a
	run -75 rlock sem -n --permits 2 a -- true
	assert_output ''
	run -75 env CI=true rlock sem --wait 1300ms --permits 2 a -- true
	assert_line --regexp '^rlock: a: waiting for one of 2 permits, one held by [^ ]+@.* until_let_go, held for [0-9]+s$'
	assert_line --regexp '^rlock: a: timed out after 1.3s: 2 permits in all, one held by [^ ]+@.* until_let_go \('
	let_go
	all_ended_with 0
	run -0 rlock sem -n --permits 2 a -- true
	is_whole a 2
}

@test "of several semaphores all are acquired, or none" {
	hold_permit 1 b
	run -75 rlock sem -n --permits 1 a b -- true
	is_whole a 1
	let_go
	ended_with 0
	run -0 rlock sem -n --permits 1 a b -- redis-cli -s "$SERVER_SOCKET" mget a b
	assert_output '0
0'
	is_whole a 1
	is_whole b 1
}

@test "the scripts of an uncontended permit run nineteen commands on the server, and four more while others are held" {
	# From here on the server knows the scripts.
	rlock sem --permits 3 a -- true
	redis config resetstat >/dev/null
	rlock sem --permits 3 a -- true
	run -0 commands_in_scripts
	((output <= 19)) || fail "$output commands"
	hold_permit 3 a
	redis config resetstat >/dev/null
	rlock sem --permits 3 a -- true
	run -0 commands_in_scripts
	((output <= 23)) || fail "$output commands"
	let_go
	ended_with 0
}

# ---- without a command, and to the end of a process ----

@test "a permit of a process is released by unlock, renewed by renew, and comes back when the process ends" {
	start_script 'rlock sem --permits 2 --pid $$ a >slot && rlock renew --mode sem --pid $$ a && rlock unlock --mode sem --pid $$ a
		echo "$?"; rlock sem --permits 2 --pid $$ a >slot; echo got >got; until_let_go' >log 2>&1
	wait_until 5 file_exists got
	assert_equal "$(sed -n '$p' log)" 0
	has_free a 1
	kill -KILL "$PID"
	wait_until 5 is_whole a 2
}

@test "renew does not revive a permit whose lease has ended, though others are held" {
	run -0 rlock sem --permits 2 --owner ci-1 --lease 1m a
	run -0 rlock sem --permits 2 --owner ci-2 --lease 1s a
	let_pass 1.01
	run -1 rlock renew --owner ci-2 a
	run -1 rlock unlock --owner ci-2 a
	run -0 rlock sem -n --permits 2 a -- true
}

# ---- holders that are gone ----

@test "a dead holder's permit is back when its lease is over, by a waiter's own timer" {
	hold_permit 1 a -t 2s
	kill_holder "$PID"
	run -0 rlock sem -w 12s --permits 1 a -- true
	is_whole a 1
}

@test "a permit of Java is reclaimed 5 s after its deadline, since the client's clock may be behind" {
	redis set a 1
	java_takes_permit a 0123456789abcdef "$(server_ms)"
	run -75 rlock sem -n --permits 1 a -- true
	run -0 rlock sem --wait 20s --permits 1 a -- true
	is_whole a 1
}

@test "a permit whose id is gone is lost, and the command is terminated" {
	hold_permit 2 a -t 1s --take 2
	redis zrem '{a}:timeout' "$(redis zrange '{a}:timeout' 0 0)"
	ended_with 76
	# What was left of the hold came back.
	has_free a 1
	has_held a 0
}

# ---- the total ----

@test "a total that differs is kept, with one warning that names both" {
	redis set a 2
	run -0 rlock sem --permits 3 a -- true
	assert_one_line '^rlock: a: has 2 permits in all, and --permits says 3: --resize changes it$'
	is_whole a 2
	run -0 rlock sem --permits 1 a -- true
	assert_one_line '^rlock: a: has 2 permits in all, and --permits says 1: --resize changes it$'
	is_whole a 2
	run -0 rlock sem --permits 2 a -- true
	assert_output ''
}

@test "a total that is made less lets no waiter in until so many permits came back, and its waiters wait on" {
	hold_permit 2 a
	local first=$PID
	hold_permit 2 a
	in_background rlock sem --permits 2 a -- touch entered
	local waiter=$PID
	wait_until 5 has_waiters a 1
	run -0 rlock sem --permits 1 --resize a
	has_free a -1
	kill -TERM "$first"
	ended_with 143 "$first"
	has_free a 0
	stays 1 has_waiters a 1
	[ ! -e entered ]
	let_go
	ended_with 0 "$waiter"
	wait "${BACKGROUND[@]}" || :
	wait_until 5 is_whole a 1
}

@test "a call that needs more permits than there are says so, and names no holder when there is none" {
	redis set a 3 >/dev/null
	run -75 rlock sem --permits 5 --take 4 -n a -- true
	assert_one_line '^rlock: a: has 3 permits in all, and --permits says 5: --resize changes it$'
	run -75 rlock sem --permits 5 --take 4 -n -v a -- true
	assert_line 'rlock: a: busy: the semaphore has 3 permits in all, and 4 must be free: --resize gives it more'
	redis decr a >/dev/null
	rlock sem --permits 2 --owner x --lease 1m a
	run -75 rlock sem --permits 2 --take 2 -w 100ms a -- true
	assert_one_line '^rlock: a: timed out after 100ms: 2 permits in all, one held by [^ ]+@.*'
}

@test "a call is told that permits are kept for a waiter, and no id of one" {
	redis set a 1 >/dev/null
	redis set 'rlock_turn:{a}' "$(server_ms)000 0123456789abcdef0123456789abcdef" >/dev/null
	run -75 rlock sem --permits 1 -w 100ms a -- true
	assert_output 'rlock: a: timed out after 100ms: kept for the next waiter'
}

# ---- waiters ----

@test "a release notifies Java's waiters of how many permits are free, and those only when one is" {
	record_channel 'redisson_sc:{a}'
	run -0 rlock sem --permits 3 a -- true
	run -0 rlock sem --permits 3 --take 2 a -- true
	# The first one found no counter, as RSemaphore.trySetPermits does.
	assert_equal "$(show_channel 'redisson_sc:{a}')" '2 3 3'
}

@test "waiters are woken in the order in which they came" {
	local i
	hold_permit 1 a
	for i in 1 2 3; do
		in_background rlock sem --permits 1 a -- sh -c 'echo "$1" >>turns' sh "$i"
		wait_until 5 has_waiters a "$i"
	done
	let_go
	all_ended_with 0
	assert_equal "$(cat turns)" '1
2
3'
	is_whole a 1
}

@test "a waiter is woken at once by a release, and by one of Java" {
	hold_permit 1 a
	in_background rlock sem --permits 1 a -- until_let_go
	wait_until 5 has_waiters a 1
	redis eval 'redis.call("incrby", KEYS[1], 1) redis.call("publish", KEYS[2], 1)' 2 a 'redisson_sc:{a}'
	# By itself it would look at the end of the lease.
	wait_until 5 has_held a 2
	let_go
	all_ended_with 0
	has_free a 2
}

@test "a waiter that needs several permits gets them, though others come and take one each" {
	local i
	hold_permit 2 a
	in_background rlock sem --permits 2 --take 2 a -- touch got
	wait_until 5 has_waiters a 1
	let_pass 2.1
	for i in 1 2 3; do
		in_background sh -c 'until [ -e got ]; do rlock sem --permits 2 a -- true; done'
	done
	let_go
	wait_until 10 file_exists got
	all_ended_with 0
	is_whole a 2
}

# ---- status, list, unlock --force ----

@test "status shows the total, what is free, the holders, and permits without one" {
	hold_permit 5 a --take 2 --note 'two licences'
	java_takes_permit a 0123456789abcdef 922337203685477
	redis decr a
	in_background rlock sem --permits 5 --take 2 a -- true
	wait_until 5 has_waiters a 1
	run -0 rlock status a
	assert_line --index 0 'a: semaphore, held, 1 of 5 permits free'
	assert_line --regexp '^  holder +1 2 +[0-9.]+s +[0-9]+s +2 +rlock +two licences +'
	assert_line --regexp '^  holder +- +- +1 +redisson +30313233343536373839616263646566$'
	assert_line --regexp '^  1 without a record of a holder: '
	assert_line --regexp '^  1 waiter of rlock, the first for '
	run -0 rlock status --json a
	assert_equal "$(json 'lock["kind"], lock["permits"], lock["holder_count"], lock["waiter_count"]')" \
		"('sem', {'total': 5, 'free': 1, 'without_holder': 1}, 2, 1)"
	redis incr a
	let_go
	all_ended_with 0
}

@test "unlock --force frees all permits, and with --holder those of one owner" {
	rlock sem --permits 4 --owner one --lease 1m a
	rlock sem --permits 4 --take 2 --owner two --lease 1m a
	redis decr a
	run -0 rlock unlock --force --holder two:0 a
	has_free a 2
	run -1 rlock unlock --force --holder three:0 a
	run -78 rlock unlock --force --mode plain a
	run -0 rlock unlock --force a
	is_whole a 4
	run -1 rlock unlock --force --holder one:0 a
	run -78 rlock unlock --force --mode plain a
	is_whole a 4
}

@test "unlock --force deletes a semaphore that is free, and its name is free for a lock" {
	rlock sem --permits 3 a -- true
	run -1 rlock status a
	assert_output 'a: semaphore, free, 3 of 3 permits free'
	run -78 rlock run -n a -- true
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: not held: the free semaphore was deleted$'
	no_keys
	run -1 rlock unlock --force a
	run -0 rlock run -n a -- true
	run -0 rlock sem -n --permits 2 a -- true
	is_whole a 2
	# Also one whose last permit has expired.
	run -0 rlock unlock --force a
	run -0 rlock sem --permits 1 --owner job --lease 1s a
	says_free() { [[ $(rlock status a) = 'a: semaphore, free, '* ]]; }
	wait_until 10 says_free
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: not held: the free semaphore was deleted$'
	no_keys
}
