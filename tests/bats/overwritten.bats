#!/usr/bin/env bats
# Keys of a lock that something else is written to: the lock is lost, other names are not, and what is no lock is
# left alone.

load ../lib/usual

teardown() { common_teardown; }

VERBS='run fair rlock wlock'

# overwrite KEY: with a text.
overwrite() {
	redis set "$1" text >/dev/null
}

# says TEXT: the output is this one line of rlock's.
says() {
	assert_equal "${#lines[@]}" 1
	assert_output --regexp "^rlock: $1\$"
}

OVERWRITTEN='its key was overwritten with another type \(string\)'

# ---- while a command runs ----

@test "a lock that is overwritten is lost at the next renewal, and its command is terminated" {
	local key name pids=() pid
	for key in run fair rlock 'rlock_holds:{wlock}'; do
		name=${key#rlock_holds:\{} name=${name%\}}
		in_background sh -c 'exec "$@" 2>"said-$0"' "$name" rlock "$name" -t 3s "$name" -- until_let_go
		pids+=("$PID")
		wait_until 10 is_held "$name"
		overwrite "$key"
	done
	for pid in "${pids[@]}"; do
		ended_with 76 "$pid"
	done
	for name in $VERBS; do
		run cat "said-$name"
		says "$name: lock lost at [^ ]*: $OVERWRITTEN: terminating the command: before you run it again, look at what is half done"
	done
}

@test "a lock that was overwritten before its command ended gives 76, and the others of several names are released" {
	local verb key
	for verb in $VERBS; do
		for key in b 'rlock_holds:{b}'; do
			run -76 rlock "$verb" a b c -- ask_redis "$SERVER_SOCKET" set "$key" text
			assert_line --regexp "^rlock: b: lock lost before the command ended, noticed at [^ ]+: $OVERWRITTEN: look at its work: another owner may have held the lock\$"
			is_free a
			is_free c
			redis flushall >/dev/null
		done
	done
}

@test "a lock that was overwritten before it was to be kept with --at-least gives 76" {
	run -76 rlock run --at-least 1m b -- ask_redis "$SERVER_SOCKET" set b text
	redis flushall >/dev/null
	run -76 rlock rlock --at-least 1m b -- ask_redis "$SERVER_SOCKET" set b text
}

# ---- without a command ----

@test "unlock and renew of a lock that was overwritten give 76, and act on the other names" {
	local verb
	run -76 --separate-stderr bash -c 'rlock lock --pid $$ a b c; $REDIS pexpire c 5000 >&2; $REDIS set "rlock_holds:{b}" text >&2
		rlock renew a b c; echo "$?"; $REDIS pttl c; rlock unlock a b c; exit'
	((lines[0] == 76 && lines[1] > 20000)) || fail "renew: $output"
	is_free a
	is_free c
	for verb in fair wlock; do
		redis flushall >/dev/null
		run -0 rlock "$verb" --owner job --lease 1m a b c
		redis pexpire c 5000 >/dev/null
		overwrite b
		run -76 rlock renew --owner job --lease 1m a b c
		assert_line --regexp "^rlock: b: .*$OVERWRITTEN\$"
		(($(redis pttl c) > 20000))
		run -76 rlock unlock --owner job a b c
		says "b: lock lost before it was released: $OVERWRITTEN: look at its work: another owner may have held the lock"
		is_free a
		is_free c
	done
}

@test "unlock --force breaks the other names when one is no lock, and a lock whose holds were overwritten" {
	run -0 rlock rlock --owner job --lease 1m a c
	overwrite b
	overwrite 'rlock_holds:{a}'
	run -78 rlock unlock -q --force a b c
	says 'b: not a lock of this kind: the key holds a string that is no counter: take another name'
	assert_equal "$(redis keys '*')" b
}

@test "unlock --force --holder breaks the lock of one reader where the holds were overwritten" {
	run -0 rlock rlock --owner x --lease 1m a
	run -0 rlock rlock --owner y --lease 1m a
	overwrite 'rlock_holds:{a}'
	run -0 rlock unlock -q --force --holder x:0 a
	assert_equal "$(redis hkeys a | sort)" $'mode\ny:0'
}

# ---- what stands beside a lock ----

@test "a fair lock's queue that was overwritten keeps no holder from releasing the lock, of several names each" {
	local key
	for key in redisson_lock_queue redisson_lock_timeout rlock_waiters; do
		run -0 rlock fair a b c -- \
			sh -c '$REDIS set "$0:{b}" text; $REDIS rpush "redisson_lock_queue:{b}" java:1; :' "$key"
		is_free a
		is_free b
		is_free c
		redis flushall >/dev/null
	done
}

@test "a lock whose holds were overwritten is waited for" {
	run -0 rlock lock --owner job --lease 2s a
	overwrite 'rlock_holds:{a}'
	run -0 rlock run -w 20s a -- true
}

@test "a record of a hold that a user wrote over keeps neither a waiter from waiting, nor the lock from being broken" {
	local verb
	for verb in lock fair wlock; do
		redis hset a o 1 >/dev/null
		[ "$verb" != wlock ] || redis hset a mode read >/dev/null
		redis hset 'rlock_holds:{a}' 0123456789abcdef0123456789abcdef 'o garbage' >/dev/null
		run -75 rlock "${verb/#lock/run}" -n a -- true
		run -0 rlock unlock --force a
		no_keys
	done
}

# ---- numbers that no lock has ----

# refuses_hash FIELD VALUE...: no verb takes such a hash for a lock, and it is as it was.
refuses_hash() {
	local verb before
	redis hset a "$@" >/dev/null
	before=$(redis hgetall a | sort)
	for verb in run rlock; do
		run -78 rlock "$verb" -w 5s a -- touch ran
		assert_output --regexp '^rlock: a: not a lock of this kind: the key holds a '
	done
	run -78 rlock unlock --force a
	assert_equal "$(redis hgetall a | sort)" "$before"
	assert_equal "$(redis pttl a)" -1
	assert_equal "$(redis dbsize)" 1
	refute file_exists ran
	redis del a >/dev/null
}

@test "a hash whose counts are no lock's is refused and left alone" {
	refuses_hash mode read workers 300000
	refuses_hash workers 300000
	refuses_hash mode dark workers 1
	refuses_hash workers -1
	refuses_hash workers 1.5
}

@test "a great number that is written into a lock's hash costs no time, and keeps no hold" {
	run -0 rlock rlock --owner job --lease 1m a
	redis hset a workers 1000000000 >/dev/null
	# A loop over it would take minutes.
	run -0 timeout 20 rlock renew --owner job a
	run -0 timeout 20 rlock unlock --owner job a
	no_keys
}

@test "an owner's own count that was overwritten with a great number is a lost lock" {
	run -76 timeout 20 rlock rlock a -- sh -c '$REDIS hset a "$($REDIS hkeys a | grep -vx mode)" 1000000000'
}
