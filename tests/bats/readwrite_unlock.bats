#!/usr/bin/env bats
# unlock and renew of one of the read and write locks that an owner has, by --mode; and those that unlock --force breaks.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/sharing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- --mode: one of an owner's holds ----

# fields_are FIELD...: the owners in the lock "a", in the order of the alphabet.
fields_are() {
	assert_equal "$(redis hkeys a | grep -vx mode | LC_ALL=C sort | xargs)" "$*"
}

# both_for_job: a write lock, and a read lock inside, of an owner.
both_for_job() {
	rlock wlock --owner job --lease 60s a
	rlock rlock --owner job --lease 60s a
	fields_are job:0 job:0:write
}

@test "an owner releases the hold of the kind that --mode names" {
	both_for_job
	run -0 rlock unlock --owner job --mode write a
	fields_are job:0
	run -1 rlock unlock --owner job --mode write a
	run -1 rlock unlock --owner job --mode plain a
	run -0 rlock unlock --owner job --mode read a
	no_keys
	both_for_job
	run -0 rlock unlock --owner job --mode read a
	fields_are job:0:write
	run -0 rlock unlock --owner job a
	no_keys
}

@test "an owner renews the hold of the kind that --mode names" {
	both_for_job
	run -0 rlock renew --owner job --mode write --lease 120s a
	ttl_between 0 '{a}:job:0:rwlock_timeout:1' 60000
	ttl_between 100000 a 120000
	run -0 rlock renew --owner job --mode read --lease 120s a
	ttl_between 100000 '{a}:job:0:rwlock_timeout:1' 120000
	run -1 rlock renew --owner job --mode plain --lease 120s a
	rlock unlock --force -q a
	no_keys
}

@test "of a lock that is broken --mode says which kind it has to be" {
	both_for_job
	run -1 rlock unlock --force --mode plain a
	run -0 rlock unlock --force --mode read a
	fields_are job:0:write
	run -1 rlock unlock --force --mode read a
	run -0 rlock unlock --force --mode write a
	no_keys
	both_for_job
	run -0 rlock unlock --force --holder job:0 --mode read a
	fields_are job:0:write
	run -0 rlock unlock --force --holder job:0 --mode write a
	no_keys
	rlock lock --owner job --lease 60s a
	run -1 rlock unlock --force --mode write a
	run -0 rlock unlock --force --mode fair a
	no_keys
	rlock rlock --owner job --lease 60s a
	rlock rlock --owner other --lease 60s a
	run -1 rlock unlock --force --mode write a
	run -0 rlock unlock --force --mode read a
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
	queue_guest w wlock a -v
	run -0 rlock unlock --force --holder "$(owner_of a "$one")" a
	assert_one_line "^rlock: a: lock broken: .*\($UUID:$one\), which may still run\$"
	assert_equal "$(redis hkeys a)" "mode
$other"
	assert_equal "$(list_keys '{a}:*')" "{a}:$other:rwlock_timeout:1"
	assert_equal "$(count_records a)" 1
	ended_with 76 "$one"
	stays_outside 0.3 w
	let_guest_out r2
	ended_with 0 "$two"
	enters_woken w
}

@test "unlock --force --holder knows a writer with and without ':write', and leaves the lock to any other owner" {
	local owner
	admit_guest w1 wlock a
	owner=$(owner_of a "$PID")
	run -1 rlock unlock --force --holder "$JAVA" a
	assert_one_line "^rlock: a: .*$owner:write"
	is_mode a write
	run -0 rlock unlock --force --holder "$owner:write" a
	no_keys
	admit_guest w2 wlock a
	owner=$(owner_of a "$PID")
	run -0 rlock unlock --force --holder "$owner" a
	no_keys
	admit_guest r rlock a
	run -1 rlock unlock --force --holder "$owner" a
	assert_one_line "^rlock: a: .*\($UUID:$PID\)\$"
	is_mode a read
}
