#!/usr/bin/env bats
# Read and write locks: readers share, a writer is alone, waiters acquire the lock as soon as they may; the keys on the server;
# what is refused; which hold is released. wake_queue.bats tests which waiter comes next, model.bats random sequences and faults.

load ../lib/usual
load ../lib/contenders

# is_refused VERB CONTENDER [SUFFIX]: a call with this verb must wait for its whole wait time, end with 75 and the holder's name, and
# leave the lock unchanged.
is_refused() {
	local start
	digest_keys >before
	run -75 rlock "$1" -n a -- touch ran
	assert_output ''
	start=$(now_ms)
	takes_less_than 7 run_timed_out 75 rlock "$1" -w 400ms a -- touch ran
	(($(now_ms) - start >= 400))
	assert_one_line "^rlock: a: timed out after 400ms: held by a report \($UUID:${PIDS[$2]}${3-}\) for [0-9.]+s; give a longer --wait, or end that job\$"
	digest_keys | diff before -
	refute file_exists ran
}

@test "readers share the lock and a writer is alone; a call that times out names the holder" {
	start_holder r1 read -l 5m --note 'a report' a
	is_refused write r1
	start_holder r2 read a
	finish_contenders r1 r2
	no_keys
	start_holder w write -l 5m --note 'a report' a
	is_refused read w :write
	is_refused write w :write
}

@test "a writer is woken by the release of the last reader, and its own release wakes all readers" {
	start_holder r1 read a
	queue_contender w write a
	finish_contenders r1
	enters_when_woken w
	queue_contender r2 read a
	queue_contender r3 read a
	finish_contenders w
	wait_until 5 have_entered r2 r3
	finish_contenders r2 r3
	# Poll: if a reader has waited for 2 s, others leave it its turn for a second.
	wait_until 5 no_keys
}

# ---- Java ----

@test "a Java reader's lock admits readers, and a Java writer's lock excludes them until it publishes" {
	redis hset a mode read "$JAVA" 1 >/dev/null
	redis pexpire a 20000 >/dev/null
	redis set "{a}:$JAVA:rwlock_timeout:1" 1 px 20000 >/dev/null
	digest_keys >before
	run -75 rlock write -n a -- true
	run -0 rlock read -n a -- true
	digest_keys | diff before -
	# When rlock's reader has ended, the lock must last only for the Java reader's lease, and not for rlock's of 30 s.
	ttl_between 10000 a 20000
	redis pexpire a 60000 >/dev/null
	redis hset a mode write "$JAVA:write" 1 >/dev/null
	redis hdel a "$JAVA" >/dev/null
	run_timed_out 75 rlock write -w 50ms a -- true
	assert_one_line "^rlock: a: .*$JAVA:write"
	queue_contender r read a
	redis del a >/dev/null
	redis publish 'redisson_rwlock:{a}' 1 >/dev/null
	enters_when_woken r
}

@test "readers and writers store the same keys as Redisson's, and publish when they release" {
	local owner
	record_messages 'redisson_rwlock:{a}'
	start_holder r read a
	owner=$(redis hkeys a | grep -xE "$UUID:${PIDS[r]}")
	assert_equal "$(redis hgetall a | xargs)" "mode read $owner 1"
	assert_equal "$(list_keys | xargs)" "a rlock_ends:{a} rlock_holds:{a} {a}:$owner:rwlock_timeout:1"
	assert_equal "$(redis get "{a}:$owner:rwlock_timeout:1")" 1
	ttl_between 15000 a 30000
	ttl_between 15000 "{a}:$owner:rwlock_timeout:1" 30000
	finish_contenders r
	redis publish 'redisson_rwlock:{a}' between >/dev/null
	start_holder w write a
	owner=$(redis hkeys a | grep -xE "$UUID:${PIDS[w]}:write")
	assert_equal "$(redis hgetall a | xargs)" "mode write $owner 1"
	assert_equal "$(list_keys | xargs)" 'a rlock_holds:{a}'
	ttl_between 15000 a 30000
	finish_contenders w
	run -0 show_messages 'redisson_rwlock:{a}'
	assert_equal "$(awk '{ print $2 }' <<<"$output" | xargs)" '0 between 1'
	# Poll: the process that records messages looks like a waiter of another program, for which the lock stays reserved for a
	# moment.
	wait_until 5 no_keys
}

# ---- refused ----

@test "a key of another kind of lock is refused immediately, also with --wait, and not changed" {
	local holder verb option
	while read -r holder verb; do
		start_holder "$holder-$verb" "$holder" -l 5m a
		digest_keys >before
		for option in -n '-w20s'; do
			run -78 timeout 15 rlock "$verb" $option a -- touch ran
			assert_one_line "^rlock: a: .*; its holders use .*; try: rlock (run|fair|write) $option a -- touch ran\$"
		done
		digest_keys | diff before -
		finish_contenders "$holder-$verb"
	done <<-'EOT'
		fair read
		run write
		read run
		write fair
	EOT
	refute file_exists ran
}

@test "the line in the message about a lock of another kind excludes its holder" {
	start_holder holder run -l 5m a
	run -78 rlock write -n -E 3 a -- touch ran
	assert_output --partial 'its holders use run, lock or fair; try: rlock run '
	run -3 sh -c "${output##*try: }"
	run -78 rlock sem --permits 2 a -- touch ran
	assert_output --regexp '; its holders use run, lock or fair$'
	refute file_exists ran
	finish_contenders holder
}

@test "a reader does not wait for a writer that came later, when the first writer gives up" {
	local claim
	start_holder h read a
	queue_contender w1 write -w 60s a
	queue_contender r read -w 60s a
	wait_until 20 eval 'claim=$(redis get "rlock_writer:{a}") && [ -n "$claim" ]'
	# On a busy machine the claim of the first writer could be older than 2.5 s, and the second one would take it.
	stop_waiters "${PIDS[w1]}"
	redis set 'rlock_writer:{a}' "$claim" px 60000 >/dev/null
	queue_contender w2 write -w 60s a
	assert_equal "$(redis get 'rlock_writer:{a}')" "$claim"
	continue_waiters "${PIDS[w1]}"
	kill "${PIDS[w1]}"
	ended_with 143 "${PIDS[w1]}"
	wait_until_entered r
	are_waiting w2
	finish_contenders h r
	wait_until_entered w2
	finish_contenders w2
}

@test "a writer that also waits for another writer does not keep readers out" {
	in_background rlock write a -- run_until_ended
	in_background rlock read b -- run_until_ended
	wait_until 5 is_held a
	wait_until 5 is_held b
	in_background rlock write -w 1m a b -- true
	wait_until 5 has_waiters a 1
	is_free 'rlock_writer:{b}'
	rlock read -w 20s b -- true
}

@test "a writer that also waits for the turn of another waiter keeps readers out from the end of that turn on" {
	in_background rlock read a -- run_until_ended
	wait_until 5 is_held a
	redis set 'rlock_turn:{b}' '2 0123456789abcdef0123456789abcdef' px 3000 >/dev/null
	in_background rlock write -w 1m a b -- true
	wait_until 5 has_waiters a 1
	wait_until 10 is_held 'rlock_writer:{a}'
}

@test "an upgrade of a read lock is a deadlock: 64 immediately, whatever the wait time" {
	local words
	for words in '-n -E 0' '-w 20s' '-w 20s b'; do
		run -64 timeout 15 rlock read a -- sh -c 'show=$($REDIS hgetall a); rlock write '"$words"' a -- touch ran; status=$?
			[ "$show" = "$($REDIS hgetall a)" ] && exit $status'
		assert_one_line '^rlock: a: an upgrade of a read lock would be a deadlock; release the read lock first'
	done
	refute file_exists ran
}

# ---- re-entered ----

@test "waiting readers acquire the lock immediately when a writer keeps only a read lock, and writers do not" {
	in_background rlock write a -- sh -c 'rlock read a -- inside own >/dev/null 2>&1 3>&- & inside w'
	wait_until 5 have_entered own w
	queue_contender r1 read a
	queue_contender w2 write a
	touch out-w
	wait_until 5 has_entered r1
	assert_equal "$(redis hget a mode)" read
	finish_contenders r1
	stays_true_for 0.2 are_waiting w2
	touch out-own
	enters_when_woken w2
}

@test "a script that holds the read lock re-enters it while a writer waits" {
	in_background bash -c 'rlock read --pid $$ a; inside r; rlock read --pid $$ a; rlock unlock a; inside again'
	wait_until 5 has_entered r
	queue_contender w write a
	touch out-r
	wait_until 5 has_entered again
	are_waiting w
	touch out-again
	wait_until 5 has_entered w
}

@test "a reader's expired hold is neither released nor renewed, although other readers still hold the lock" {
	start_holder other read a
	run -0 rlock read --owner job-1 --lease 1s a
	wait_until 5 is_free '{a}:job-1:0:rwlock_timeout:1'
	run -1 rlock renew --owner job-1 a
	is_free '{a}:job-1:0:rwlock_timeout:1'
	run -1 rlock unlock --owner job-1 a
}

# ---- --mode, and locks that are broken ----

# both_for_job: the owner "job" acquires a write lock, and then a read lock inside it.
both_for_job() {
	rlock write --owner job --lease 60s a
	rlock read --owner job --lease 60s a
}

@test "--mode selects the kind of hold that renew, unlock and unlock --force act on; without it they take the latest" {
	both_for_job
	run -0 rlock renew --owner job --mode write --lease 120s a
	ttl_between 0 '{a}:job:0:rwlock_timeout:1' 60000
	ttl_between 100000 a 120000
	run -0 rlock renew --owner job --mode read --lease 120s a
	ttl_between 100000 '{a}:job:0:rwlock_timeout:1' 120000
	run -1 rlock renew --owner job --mode plain --lease 120s a
	run -0 rlock unlock --owner job --mode write a
	# Redisson must see the read lock, too.
	assert_equal "$(redis hgetall a | xargs)" 'mode read job:0 1'
	run -1 rlock unlock --owner job --mode write a
	run -0 rlock unlock --owner job --mode read a
	no_keys
	both_for_job
	run -0 rlock unlock --owner job a
	assert_equal "$(redis hgetall a | xargs)" 'mode write job:0:write 1'
	run -1 rlock unlock --force --mode read a
	run -0 rlock unlock --force --holder job:0 --mode write a
	rlock lock --owner job --lease 60s a
	run -0 rlock unlock --force --mode fair a
	no_keys
}

@test "unlock --force breaks the locks of all readers with their timeout keys, and a waiting writer acquires the lock" {
	start_holder r1 read a
	start_holder r2 read a
	queue_contender w write a
	run -0 rlock unlock --force a
	assert_one_line "^rlock: a: .*\($UUID:[0-9]+ and 1 more\), which may still run\$"
	enters_when_woken w
	assert_equal "$(list_keys '{a}:*')" ''
	finish_contenders w
	end_commands
	ended_with 76 "${PIDS[r1]}"
	ended_with 76 "${PIDS[r2]}"
}
