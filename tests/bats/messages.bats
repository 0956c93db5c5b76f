#!/usr/bin/env bats
# bats file_tags=computes
# What rlock says to people: what happened first, then why, then what to do. The list of all that it can say is compared by
# help.bats.

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	REDISCLI_AUTH=secret redis config set requirepass '' >/dev/null 2>&1
	redis replicaof no one >/dev/null
	watchful_teardown
}

ISO_8601='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[-+][0-9]{2}:[0-9]{2}'

@test "with -v rlock says after which time the lock was acquired and released" {
	run -0 rlock run -v nightly -- true
	assert_line --regexp '^rlock: nightly: acquired after [0-9.]+s$'
	assert_line --regexp '^rlock: nightly: released after [0-9.]+s$'
}

@test "with -v rlock says until when --at-least keeps a lock that its command has left" {
	run -0 rlock run -v --at-least 1m nightly -- true
	assert_line --regexp "^rlock: nightly: the command has ended after [0-9.]+s: kept by --at-least until $ISO_8601$"
}

@test "a lock that --at-least keeps is said to be kept, and until when" {
	local kept="kept by --at-least, its job has ended: the sync \\([^ ]+:[0-9]+(:write)?\\), until $ISO_8601" verb
	for verb in run fair read write 'sem --permits 1'; do
		# shellcheck disable=SC2086
		rlock $verb --at-least 5m --note 'the sync' nightly -- true
		# shellcheck disable=SC2086
		run -75 rlock ${verb/read/write} -n -v nightly -- true
		assert_line --regexp "^rlock: nightly: busy: $kept\$"
		# shellcheck disable=SC2086
		run -75 env CI=true rlock ${verb/read/write} -w 1300ms nightly -- true
		assert_line --regexp "^rlock: nightly: waiting: kept by --at-least, its job has ended: the sync, until $ISO_8601(, position 1 in the queue)?\$"
		assert_line --regexp "^rlock: nightly: timed out after 1.3s: $kept: give a longer --wait\$"
		run -0 rlock status nightly
		assert_line --regexp "^  kept by --at-least until $ISO_8601: its job has ended\$"
		run -1 rlock unlock --force --holder another nightly
		assert_output --regexp "^rlock: nightly: not broken: $kept\$"
		run -0 rlock unlock --force nightly
		assert_output --regexp "^rlock: nightly: lock broken: --at-least kept it until $ISO_8601, its job has ended: the sync \\("
	done
}

@test "until when --at-least keeps a lock is a time of day" {
	local until
	rlock run --at-least 1h nightly -- true
	until=$(rlock status nightly | sed -n 's/.* until \([^ ]*\): .*/\1/p')
	assert_between $(($(date +%s) + 3400)) "$(date -d "$until" +%s)" $(($(date +%s) + 3600))
}

@test "with -v a line names the server once, and no script" {
	local verb
	for verb in run fair read write; do
		run -0 rlock "$verb" -v "of-$verb" -- true
		refute_line --regexp '(redis|unix)://.*(redis|unix)://'
		refute_line --regexp '[a-z]_(acquire|release|renew|leave)'
	done
}

@test "with -v a line about a server that fails names it once" {
	run -69 rlock run -v -u redis://127.0.0.1:1 nightly -- true
	assert_line --regexp '^rlock: cannot reach redis://127.0.0.1:1/0: '
	refute_line --regexp '(redis|unix)://.*(redis|unix)://'
	run -77 rlock run -v --password-command 'echo secret' -u "redis://127.0.0.1:$PORT" nightly -- true
	refute_line --regexp '(redis|unix)://.*(redis|unix)://'
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
	in_background rlock run --ttl 6s nightly -- sleep 60 2>lost
	wait_until 5 is_held nightly
	redis del nightly >/dev/null
	wait_until 10 is_gone "$PID"
	run -0 cat lost
	assert_output --regexp "^rlock: nightly: lock lost at $ISO_8601: it expired or was deleted on the server: terminating the command: before you run it again, look at what is half done$"
}

@test "the breaking of a lock names its holder with host, user, process id and program, which may still run" {
	in_background rlock run nightly -- sleep 60
	wait_until 5 is_held nightly
	run -0 rlock unlock --force nightly
	kill "$PID"
	wait_until 5 is_gone "$PID"
	assert_output --regexp "^rlock: nightly: lock broken: it was held by .+@.+ pid $PID .*\([0-9a-f-]+:$PID\), which may still run$"
}

@test "the breaking of a lock of Redisson names its owner" {
	redis hset nightly 0d7d4a3e-6f1b-4f6a-8a53-5d7c2c5ad1f2:1 1 >/dev/null
	run -0 rlock unlock --force nightly
	assert_output 'rlock: nightly: lock broken: it was held by 0d7d4a3e-6f1b-4f6a-8a53-5d7c2c5ad1f2:1, which may still run'
}

@test "an upgrade says what to do instead" {
	run -64 rlock read nightly -- rlock write nightly -- true
	assert_output 'rlock: nightly: an upgrade of a read lock would be a deadlock: release the read lock first, or begin with the write lock'
}

@test "where a wrong password is from stands before the server's words" {
	redis config set requirepass secret >/dev/null
	REDISCLI_AUTH=wrong run -77 rlock run -u "redis://127.0.0.1:$PORT" nightly -- true
	assert_output --regexp '^rlock: nightly: denied by the server: check user and password: the password is from REDISCLI_AUTH: WRONGPASS '
}

@test "a release that failed says when the lock expires, and the server's words come last" {
	run -0 rlock run --ttl 20s nightly -- bash -c "
		redis-cli -s '$SERVER_SOCKET' replicaof 127.0.0.1 1
		redis-cli -s '$SERVER_SOCKET' client kill type normal
	"
	assert_line --regexp '^rlock: nightly: release failed: .*: the lock expires with its lease, in about 1[0-9]s: READONLY '
}

@test "a password that is missing is reported with the options that give it, and without words about a length" {
	redis config set requirepass secret >/dev/null
	run -77 rlock run -u "redis://127.0.0.1:$PORT" nightly -- true
	assert_output --regexp '^rlock: nightly: server requires a password: give one in the URL, by --password-file, --password-command or REDISCLI_AUTH$'
}
