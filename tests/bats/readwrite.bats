#!/usr/bin/env bats
# Read and write locks: readers share, a writer is alone, and waiters get in when they may; what stands on the server, what
# is refused, and which hold is released. Which has its turn when many come: starvation.bats; holds, leases and counts in all
# orders, and faults: model.bats.

load ../lib/usual
load ../lib/sharing

@test "readers are in together, and a writer alone" {
	local before option
	admit_guest r1 rlock a -l 5m
	before=$(show_contents)
	for option in -n '--wait 0'; do
		# shellcheck disable=SC2086
		run -75 rlock wlock $option a -- touch ran
		assert_output ''
	done
	assert_equal "$(show_contents)" "$before"
	admit_guest r2 rlock a
	run -0 rlock rlock -n a -- true
	let_go
	all_ended_with 0
	no_keys
	rm let-go
	admit_guest w wlock a -l 5m
	before=$(show_contents)
	run -75 rlock rlock -n a -- touch ran
	run -75 rlock wlock -n a -- touch ran
	run -9 rlock rlock -n -E 9 a -- touch ran
	refute file_exists ran
	assert_equal "$(show_contents)" "$before"
}

@test "a waiter whose time is over is told which holder has the lock, not sooner, and leaves it as it was" {
	local before start took
	admit_guest w wlock a -l 5m --note 'nightly import'
	before=$(show_contents)
	start=$(now_ms)
	run -75 rlock rlock -w 400ms a -- touch ran
	took=$(($(now_ms) - start))
	((took >= 400 && took < 6000)) || fail "took $took ms"
	assert_one_line "^rlock: a: timed out after 400ms: held by nightly import \($UUID:$PID:write\), for [0-9.]+s: give a longer --wait, or end that job\$"
	assert_equal "$(show_contents)" "$before"
	let_guest_out w
	ended_with 0
	admit_guest r rlock a -l 5m --note 'a report'
	before=$(show_contents)
	run -75 rlock wlock -w 50ms a -- touch ran
	assert_one_line "^rlock: a: timed out after 50ms: held by a report \($UUID:$PID\), for [0-9.]+s: give a longer --wait, or end that job\$"
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "a writer is woken when the last reader leaves, and lets all readers in at once when it does" {
	admit_guest r1 rlock a
	queue_guest w wlock a -v
	let_guest_out r1
	enters_woken w
	queue_guest r2 rlock a
	queue_guest r3 rlock a
	queue_guest r4 rlock a
	let_guest_out w
	wait_until 5 all_are_inside r2 r3 r4
	let_go
	all_ended_with 0
	no_keys
}

# ---- Java ----

@test "what a Java reader holds keeps a writer out, and lets readers in" {
	redis hset a mode read "$JAVA" 1 >/dev/null
	redis pexpire a 20000 >/dev/null
	redis set "{a}:$JAVA:rwlock_timeout:1" 1 px 20000 >/dev/null
	local before
	before=$(show_contents)
	run -75 rlock wlock -w 50ms a -- true
	assert_one_line "^rlock: a: .*$JAVA"
	run -0 rlock rlock -n a -- true
	assert_equal "$(show_contents)" "$before"
	# Its own lease counts again, not ours of 30 s.
	ttl_between 10000 a 20000
}

@test "what a Java writer holds keeps all out until it publishes" {
	redis hset a mode write "$JAVA:write" 1 >/dev/null
	redis pexpire a 30000 >/dev/null
	run -75 rlock rlock -n a -- true
	run -75 rlock wlock -w 50ms a -- true
	assert_one_line "^rlock: a: .*$JAVA:write"
	queue_guest r rlock a
	redis del a >/dev/null
	redis publish 'redisson_rwlock:{a}' 1 >/dev/null
	wait_until 5 is_inside r
}

@test "a reader is the hash and the timeout key that Redisson's has, a writer the hash, and each publishes when it leaves" {
	local owner
	record_channel 'redisson_rwlock:{a}'
	admit_guest r rlock a
	owner=$(owner_of a "$PID")
	assert_equal "$(redis hgetall a | xargs)" "mode read $owner 1"
	assert_equal "$(list_keys | xargs)" "a rlock_ends:{a} rlock_holds:{a} {a}:$owner:rwlock_timeout:1"
	assert_equal "$(redis get "{a}:$owner:rwlock_timeout:1")" 1
	ttl_between 15000 a 30000
	ttl_between 15000 "{a}:$owner:rwlock_timeout:1" 30000
	let_guest_out r
	ended_with 0
	redis publish 'redisson_rwlock:{a}' between >/dev/null
	admit_guest w wlock a
	owner=$(owner_of a "$PID")
	assert_equal "$(redis hgetall a | xargs)" "mode write $owner:write 1"
	assert_equal "$(list_keys | xargs)" 'a rlock_holds:{a}'
	ttl_between 15000 a 30000
	let_guest_out w
	ended_with 0
	assert_equal "$(show_channel 'redisson_rwlock:{a}')" '0 between 1'
	# Its listener counts as a waiter of others, which a turn is left to.
	wait_until 5 no_keys
}

# ---- locks of another kind ----

# refuses VERB TEXT: 78 with what stands there, waited for or not, and nothing has changed.
refuses() {
	local before option
	before=$(show_contents)
	for option in -n '-w20s'; do
		run -78 timeout 15 rlock "$1" $option a -- touch ran
		assert_one_line "^rlock: a: .*$2: take [a-z, ]*another name\$"
	done
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "a lock of the other kind is refused, and left alone" {
	admit_guest fair fair a -l 5m
	refuses rlock 'plain or fair lock'
	refuses wlock 'plain or fair lock'
	let_guest_out fair
	ended_with 0
	admit_guest reader rlock a -l 5m
	refuses run 'read/write lock'
	refuses fair 'read/write lock'
	let_guest_out reader
	ended_with 0
	run -78 rlock wlock a -- rlock run a -- touch ran
	no_keys
}

# ---- re-entered ----

# never_to_be_had COMMAND...: 64 at once, in one line, and nothing has changed.
never_to_be_had() {
	local before
	before=$(show_contents)
	run -64 timeout 15 "$@"
	assert_one_line '^rlock: a: an upgrade of a read lock would be a deadlock: release the read lock first'
	assert_equal "$(show_contents)" "$before"
	refute file_exists ran
}

@test "an upgrade of a read lock is a deadlock: 64 at once, however long one would wait" {
	admit_guest r rlock a -l 5m
	RLOCK_HELD=$(inherited_holds_of "$PID")
	export RLOCK_HELD
	never_to_be_had rlock wlock -n -E 0 a -- touch ran
	never_to_be_had rlock wlock -w 20s a -- touch ran
	never_to_be_had rlock wlock b a -- touch ran
	has_listeners 0
}

@test "readers that wait get in at once when a writer goes on as a reader, and writers don't" {
	admit_guest w wlock a
	RLOCK_HELD=$(inherited_holds_of "$PID") admit_guest own rlock a
	queue_guest r1 rlock a
	queue_guest w2 wlock a -v
	let_guest_out w
	wait_until 5 is_inside r1
	is_mode a read
	let_guest_out r1
	stays_outside 0.2 w2
	let_guest_out own
	enters_woken w2
}

@test "what a writer that went on as a reader keeps is a read lock, for Java too" {
	run -0 rlock wlock a -- sh -c 'rlock rlock -n a -- inside r >/dev/null 2>&1 3>&- &
		comes_true test -e in-r'
	assert_equal "$(redis hget a mode)" read
}

@test "unlock releases what was locked last: the read, then the write" {
	run -0 bash -c '
		rlock wlock --pid $$ a; rlock read --pid $$ a; rlock rlock --pid $$ a
		$REDIS hvals a
		rlock unlock a; $REDIS hvals a
		rlock unlock a; $REDIS hvals a
		rlock unlock a; $REDIS dbsize
		rlock unlock -q a 2>/dev/null
		echo $?
	'
	assert_equal "$(xargs <<<"$output")" 'write 1 2 write 1 1 write 1 0 1'
}

@test "a reader's lease that has ended is neither released nor revived, though other readers hold on" {
	admit_guest other rlock a
	run -0 rlock rlock --owner job-1 --lease 1s a
	wait_until 5 is_free '{a}:job-1:0:rwlock_timeout:1'
	run -1 rlock renew --owner job-1 a
	is_free '{a}:job-1:0:rwlock_timeout:1'
	run -1 rlock unlock --owner job-1 a
}

# ---- --mode: one of an owner's holds ----

# fields_are FIELD...: the owners in the lock "a", in the order of the alphabet.
fields_are() {
	assert_equal "$(redis hkeys a | grep -vx mode | LC_ALL=C sort | xargs)" "$*"
}

# both_for_job: a write lock, and a read lock inside, of an owner.
both_for_job() {
	rlock write --owner job --lease 60s a
	rlock read --owner job --lease 60s a
	fields_are job:0 job:0:write
}

@test "an owner renews and releases the hold of the kind that --mode names" {
	both_for_job
	run -0 rlock renew --owner job --mode write --lease 120s a
	ttl_between 0 '{a}:job:0:rwlock_timeout:1' 60000
	ttl_between 100000 a 120000
	run -0 rlock renew --owner job --mode read --lease 120s a
	ttl_between 100000 '{a}:job:0:rwlock_timeout:1' 120000
	run -1 rlock renew --owner job --mode plain --lease 120s a
	run -0 rlock unlock --owner job --mode write a
	fields_are job:0
	run -1 rlock unlock --owner job --mode write a
	run -1 rlock unlock --owner job --mode plain a
	run -0 rlock unlock --owner job --mode read a
	no_keys
}

@test "of a lock that is broken --mode says which kind it has to be" {
	both_for_job
	run -1 rlock unlock --force --mode plain a
	run -0 rlock unlock --force --mode read a
	fields_are job:0:write
	run -1 rlock unlock --force --mode read a
	run -0 rlock unlock --force --holder job:0 --mode write a
	no_keys
	rlock lock --owner job --lease 60s a
	run -1 rlock unlock --force --mode write a
	run -0 rlock unlock --force --mode fair a
	no_keys
}

# ---- broken ----

@test "unlock --force breaks the locks of all readers, with their timeout keys, and the writer gets in" {
	admit_guest r1 rlock a
	admit_guest r2 rlock a
	local second=$PID
	queue_guest w wlock a -v
	run -0 rlock unlock --force a
	assert_one_line "^rlock: a: .*\($UUID:[0-9]+ and 1 more\), which may still run\$"
	enters_woken w
	assert_equal "$(list_keys '{a}:*')" ''
	let_go
	ended_with 76 "$second"
	ended_with 76 "${BACKGROUND[0]}"
	wait_until 5 no_keys
}

@test "unlock --force --holder breaks the lock of one of several readers, and leaves the others theirs" {
	local one two other
	admit_guest r1 rlock a -t 1s
	one=$PID
	admit_guest r2 rlock a
	two=$PID
	other=$(owner_of a "$two")
	run -1 rlock unlock --force --holder "$JAVA" a
	run -0 rlock unlock --force --holder "$(owner_of a "$one")" a
	assert_one_line "^rlock: a: lock broken: .*\($UUID:$one\), which may still run\$"
	assert_equal "$(redis hkeys a | xargs)" "mode $other"
	assert_equal "$(list_keys '{a}:*')" "{a}:$other:rwlock_timeout:1"
	assert_equal "$(count_records a)" 1
	ended_with 76 "$one"
	let_guest_out r2
	ended_with 0 "$two"
	no_keys
}

@test "unlock --force --holder knows a writer with and without ':write'" {
	local suffix owner
	for suffix in :write ''; do
		admit_guest "w$suffix" wlock a
		owner=$(owner_of a "$PID")
		run -1 rlock unlock --force --holder "$JAVA" a
		assert_one_line "^rlock: a: .*$owner:write"
		run -0 rlock unlock --force --holder "$owner$suffix" a
		no_keys
	done
}
