#!/usr/bin/env bats
# Other programs overwrite keys of a lock. Then that lock is lost, locks of other names are not, and the key of the other program
# is not changed.

load ../lib/usual

teardown() { common_teardown; }

OVERWRITTEN='its key was overwritten with another type \(string\)'

@test "an overwritten lock is lost at the next renewal, and its command is terminated" {
	local key name pids=() pid
	for key in run fair read 'rlock_holds:{write}'; do
		name=${key#rlock_holds:\{} name=${name%\}}
		in_background sh -c 'exec "$@" 2>"stderr-$0"' "$name" rlock "$name" -t 9s "$name" -- run_until_ended
		pids+=("$PID")
		# If the lock were lost before its command runs, that would not be started.
		wait_until 10 has_child "$PID" run_until_ended
		redis set "$key" text >/dev/null
	done
	for pid in "${pids[@]}"; do
		ended_with 76 "$pid"
	done
	for name in run fair read write; do
		run cat "stderr-$name"
		assert_one_line "^rlock: $name: lock lost at [^ ]*: $OVERWRITTEN; terminating the command; before you run it again, check what is half done\$"
	done
}

@test "when a lock was overwritten before its command ended, rlock exits with 76 and releases the other names" {
	local verb key
	for verb in run fair read write 'run --at-least 1m' 'read --at-least 1m'; do
		for key in b 'rlock_holds:{b}'; do
			# shellcheck disable=SC2086
			run -76 rlock $verb a b c -- ask_redis "$SERVER_SOCKET" set "$key" text
			assert_line --regexp "^rlock: b: lock lost before the command ended, noticed at [^ ]+: $OVERWRITTEN; check its work, another owner may have held the lock\$"
			[[ $verb = *at-least* ]] || { is_free a && is_free c; }
			redis flushall >/dev/null
		done
	done
}

@test "unlock and renew of an overwritten lock exit with 76, and release or renew the other names" {
	local verb key
	while read -r verb key; do
		run -0 rlock "$verb" --owner job --lease 1m a b c
		redis pexpire c 15000 >/dev/null
		redis set "$key" text >/dev/null
		run -76 rlock renew --owner job --lease 1m a b c
		assert_line --regexp "^rlock: b: .*$OVERWRITTEN\$"
		ttl_is_above c 20000
		run -76 rlock unlock --owner job a b c
		assert_one_line "^rlock: b: lock lost before it was released: $OVERWRITTEN; check its work, another owner may have held the lock\$"
		is_free a
		is_free c
		redis flushall >/dev/null
	done <<-'EOT'
		lock b
		fair b
		write b
	EOT
}

@test "unlock --force breaks the other names when one is no lock, and breaks locks whose hold records were overwritten" {
	run -0 rlock read --owner x --lease 1m a c
	run -0 rlock read --owner y --lease 1m a
	redis set b text >/dev/null
	redis set 'rlock_holds:{a}' text >/dev/null
	run -0 rlock unlock -q --force --holder x:0 a
	assert_equal "$(redis hkeys a | sort)" $'mode\ny:0'
	run -78 rlock unlock -q --force a b c
	assert_one_line '^rlock: b: not a lock of this kind: the key holds a string that is no counter; take another name$'
	keys_are b
}

@test "an overwritten queue does not prevent the release of the lock, also of several names" {
	local verb key
	while read -r verb key; do
		run -0 rlock "$verb" a b c -- \
			sh -c '$REDIS set "$0:{b}" text; $REDIS rpush "redisson_lock_queue:{b}" java:1; :' "$key"
		is_free a
		is_free b
		is_free c
		run -0 rlock run b -- true
		redis flushall >/dev/null
	done <<-'EOT'
		fair redisson_lock_queue
		fair redisson_lock_timeout
		fair rlock_waiters
		run rlock_queue
	EOT
}

@test "a hash whose values are not hold counts is refused and not changed" {
	local fields verb
	for fields in 'mode read workers 300000' 'workers 300000' 'mode dark workers 1' 'workers -1' 'workers 1.5'; do
		# shellcheck disable=SC2086
		redis hset a $fields >/dev/null
		digest_keys >before
		for verb in run read; do
			run -78 rlock "$verb" -w 5s a -- touch ran
			assert_output --regexp '^rlock: a: not a lock of this kind: the key holds a '
		done
		run -78 rlock unlock --force a
		digest_keys | diff before - || fail "$fields was changed"
		redis del a >/dev/null
	done
	refute file_exists ran
}

@test "a huge hold count of another owner costs no time and keeps no hold; as the owner's own count it is a lost lock" {
	run -0 rlock read --owner job --lease 1m a
	redis hset a workers 1000000000 >/dev/null
	# A loop over the hold count would take minutes.
	run -0 timeout 20 rlock renew --owner job a
	run -0 timeout 20 rlock unlock --owner job a
	no_keys
	run -76 timeout 20 rlock read a -- sh -c '$REDIS hset a "$($REDIS hkeys a | grep -vx mode)" 1000000000'
}
