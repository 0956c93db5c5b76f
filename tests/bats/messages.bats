#!/usr/bin/env bats
# bats file_tags=computes
# What rlock says to people: what happened first, then why, then what to do. The list of all that it can say is compared by
# help.bats.

load ../lib/usual

setup_file() { start_server_at_port; }

teardown() {
	REDISCLI_AUTH=secret redis config set requirepass '' >/dev/null 2>&1
	redis replicaof no one >/dev/null
	watchful_teardown
}

ISO_8601='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[-+][0-9]{2}:[0-9]{2}'

@test "with -v rlock says after which time the lock was acquired and released, or until when --at-least keeps it" {
	run -0 rlock run -v nightly -- true
	assert_line --regexp '^rlock: nightly: acquired after [0-9.]+s$'
	assert_line --regexp '^rlock: nightly: released after [0-9.]+s$'
	echo 'quiet = yes' >conf
	run -0 rlock run --config conf -v nightly -- true
	assert_line --regexp '^rlock: nightly: acquired after [0-9.]+s$'
	run -0 rlock run -v --at-least 1m nightly -- true
	assert_line --regexp "^rlock: nightly: the command has ended after [0-9.]+s: kept by --at-least until $ISO_8601$"
}

@test "a lock that --at-least keeps is said to be kept, and until when" {
	local kept="kept by --at-least, its job has ended: the sync \\([^ ]+:[0-9]+\\), until $ISO_8601" until
	rlock run --at-least 1h --note 'the sync' nightly -- true
	run -75 rlock run -n -v nightly -- true
	assert_line --regexp "^rlock: nightly: busy: $kept\$"
	run -75 env CI=true rlock run -w 2s nightly -- true
	assert_line --regexp "^rlock: nightly: waiting: kept by --at-least, its job has ended: the sync, until $ISO_8601\$"
	assert_line --regexp "^rlock: nightly: timed out after 2s: $kept: give a longer --wait\$"
	run -0 rlock status nightly
	assert_line --regexp "^  kept by --at-least until $ISO_8601: its job has ended\$"
	until=$(sed -n 's/.* until \([^ ]*\): .*/\1/p' <<<"$output")
	assert_between $(($(date +%s) + 3400)) "$(date -d "$until" +%s)" $(($(date +%s) + 3600))
	run -1 rlock unlock --force --holder another nightly
	assert_output --regexp "^rlock: nightly: not broken: $kept\$"
	run -0 rlock unlock --force nightly
	assert_output --regexp "^rlock: nightly: lock broken: --at-least kept it until $ISO_8601, its job has ended: the sync \\("
}

@test "a wait that timed out names the holder, its process, and for how long it has held the lock" {
	in_background rlock run nightly -- sleep 60
	wait_until 5 is_held nightly
	run -75 rlock run --wait 1100ms nightly -- true
	kill "$PID"
	wait_until 5 is_gone "$PID"
	assert_output --regexp "^rlock: nightly: timed out after 1.1s: held by [^ ]+@[^ ]+ pid $PID sleep \([^ ]+\), for [0-9.]+s: give a longer --wait, or end that job$"
}

@test "a key of another kind is refused with the way out" {
	redis set text hello >/dev/null
	run -78 rlock run text -- true
	assert_output 'rlock: text: not a lock of this kind: the key holds a string: take another name'
	in_background rlock read shared -- sleep 60
	wait_until 5 is_held shared
	run -78 rlock run shared -- true
	assert_output 'rlock: shared: not a lock of this kind: the key holds a read/write lock: take read or write, or another name'
	kill "$PID"
	wait_until 5 is_gone "$PID"
}

@test "a lost lock is reported with the date and the offset" {
	in_background rlock run --ttl 3s nightly -- sleep 60 2>lost
	wait_until 5 is_held nightly
	redis del nightly >/dev/null
	wait_until 10 is_gone "$PID"
	run -0 cat lost
	assert_output --regexp "^rlock: nightly: lock lost at $ISO_8601: it expired or was deleted on the server: terminating the command: before you run it again, look at what is half done$"
	run -76 rlock run nightly -- ask_redis "$SERVER_SOCKET" del nightly
	assert_line --regexp "^rlock: nightly: lock lost before the command ended, noticed at $ISO_8601: it expired or was deleted on the server: look at its work: another owner may have held the lock$"
}

@test "the breaking of a lock names its holder with host, user, process id and program, which may still run" {
	in_background rlock run nightly -- sleep 60
	wait_until 5 is_held nightly
	run -0 rlock unlock --force nightly
	kill "$PID"
	wait_until 5 is_gone "$PID"
	assert_output --regexp "^rlock: nightly: lock broken: it was held by .+@.+ pid $PID .*\([0-9a-f-]+:$PID\), which may still run$"
}

@test "a release that failed says when the lock expires, and the server's words come last" {
	run -0 rlock run --ttl 20s nightly -- bash -c "
		redis-cli -s '$SERVER_SOCKET' replicaof 127.0.0.1 1
		redis-cli -s '$SERVER_SOCKET' client kill type normal
	"
	assert_line --regexp '^rlock: nightly: release failed: .*: the lock expires with its lease, in about 1[0-9]s: READONLY '
}
