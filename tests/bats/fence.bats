#!/usr/bin/env bats
# Fencing tokens: a number that grows with each time a lock is acquired, by any client, so that a holder that has been
# overtaken can be told from the present one. The counter is that of Redisson's RFencedLock. Tokens that can't be told, and
# faults: fence_faults.bats.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/fencing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- what the tests share ----

JAVA=0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e:57

# java_lock NAME: as RFencedLock's tryLockAndGetToken: the token, or -1 when it is held by another.
java_lock() {
	redis eval '
		if redis.call("exists", KEYS[1]) == 0 or redis.call("hexists", KEYS[1], ARGV[2]) == 1 then
			local token = redis.call("incr", KEYS[2])
			redis.call("hincrby", KEYS[1], ARGV[2], 1)
			redis.call("pexpire", KEYS[1], ARGV[1])
			return token
		end
		return -1' 2 "$1" "redisson_lock_token:{$1}" 30000 "$JAVA"
}

java_unlock() {
	redis eval '
		if redis.call("hincrby", KEYS[1], ARGV[1], -1) == 0 then
			redis.call("del", KEYS[1])
			redis.call("publish", KEYS[2], 0)
		end' 2 "$1" "redisson_lock__channel:{$1}" "$JAVA"
}

# ---- tokens grow ----

@test "each time the lock is acquired its token is one more" {
	local verb
	for verb in run lock fair; do
		run -0 rlock "$verb" --fence a -- printenv RLOCK_TOKEN
		echo "$output" >>tokens
	done
	assert_equal "$(cat tokens)" "1
2
3"
	only_counters a
}

@test "re-entering is issued another token" {
	run -0 rlock run --fence a -- sh -c '
		echo $RLOCK_TOKEN
		rlock run --fence a -- sh -c "echo \$RLOCK_TOKEN; rlock fair --fence a -- printenv RLOCK_TOKEN"
		echo $RLOCK_TOKEN
	'
	assert_output "1
2
3
1"
	assert_equal "$(counter a)" 3
	only_counters a
}

@test "Java's tokens and ours are of one row, re-entering on either side as well" {
	assert_equal "$(java_lock a)" 1
	assert_equal "$(java_lock a)" 2
	run -75 rlock run -n --fence a -- true
	java_unlock a
	java_unlock a
	run -0 rlock run --fence a -- sh -c 'echo $RLOCK_TOKEN; rlock run --fence a -- printenv RLOCK_TOKEN'
	assert_output "3
4"
	assert_equal "$(java_lock a)" 5
	java_unlock a
	run -0 rlock lock --owner job-1 --lease 1m --fence a
	assert_output 6
	assert_equal "$(java_lock a)" -1
	run -0 rlock unlock --owner job-1 a
	only_counters a
}

@test "a try that is in vain is issued no token, and neither is a waiter" {
	held_by_stranger a
	run -75 rlock run -n --fence a -- true
	run -75 rlock run -w 50ms --fence a -- true
	run -75 rlock fair -w 50ms --fence a -- true
	run -75 rlock run -n --fence b a -- true
	assert_equal "$(redis exists 'redisson_lock_token:{a}' 'redisson_lock_token:{b}')" 0
	in_background sh -c 'exec rlock run --fence a -- printenv RLOCK_TOKEN >token'
	wait_until 5 has_waiters a
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	run -0 rlock unlock -q --force a
	ended_with 0
	assert_equal "$(cat token)" 1
}

@test "a lock that was broken, or whose lease has ended, is acquired with a greater token" {
	run -0 rlock lock --owner job-1 --lease 1s --fence a
	assert_output 1
	run -0 rlock run -w 5s --fence a -- printenv RLOCK_TOKEN
	assert_output 2
	run -0 rlock lock --owner job-1 --lease 1m --fence a
	assert_output 3
	run -0 rlock unlock -q --force a
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 4
	only_counters a
}

@test "a renewal and a release are issued no token" {
	run -0 rlock run -t 1s --fence a -- sleep 1.2
	assert_equal "$(counter a)" 1
	run -0 bash -c 'rlock lock --pid $$ --fence a; rlock renew a >/dev/null; rlock unlock a; exit'
	assert_output 2
	assert_equal "$(counter a)" 2
	run -0 rlock run --at-least 100ms --fence a -- true
	assert_equal "$(counter a)" 3
	wait_until 2 only_counters a
}

@test "twenty that take turns get twenty tokens, in the order of their turns" {
	local number pid
	hold_in_background a
	for number in {1..20}; do
		in_background sh -c 'exec rlock "$1" --fence a -- sh -c "echo \$RLOCK_TOKEN >>tokens"' sh \
			"$([ $((number % 2)) = 0 ] && echo run || echo fair)"
	done
	let_go
	for pid in "${BACKGROUND[@]}"; do
		ended_with 0 "$pid"
	done
	assert_equal "$(cat tokens)" "$(seq 20)"
	only_counters a
}

# ---- where the token is told ----

@test "only with --fence is the command told a token" {
	redis set 'redisson_lock_token:{a}' 41 >/dev/null
	run -1 rlock run a -- printenv RLOCK_TOKEN
	assert_output ''
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 43
}

@test "a command inside without --fence is not told the token of the lock outside" {
	run -1 rlock run --fence a -- rlock run b -- printenv RLOCK_TOKEN
	run -1 rlock run --fence a -- rlock rlock b -- printenv RLOCK_TOKEN
	RLOCK_TOKEN=7 run -1 rlock run a -- printenv RLOCK_TOKEN
	assert_output ''
}

@test "with a command the token does not come out on standard output" {
	run -0 rlock run --fence a -- true
	assert_output ''
	run -0 rlock lock --fence a -- echo here
	assert_output here
}

@test "tokens of several names stand one a line, in the order of the names" {
	redis set 'redisson_lock_token:{b}' 10 >/dev/null
	redis set 'redisson_lock_token:{c}' 20 >/dev/null
	run -0 rlock run --fence c a b -- printenv RLOCK_TOKEN
	assert_output "21
1
11"
	run -0 rlock lock --owner job-1 --lease 1m --fence b c a
	assert_output "12
22
2"
	run -0 rlock unlock --owner job-1 a b c
	only_counters a b c
}

@test "of several names those that are re-entered are issued one as well" {
	run -0 rlock run --fence a -- rlock run --fence b a -- printenv RLOCK_TOKEN
	assert_output "1
2"
	only_counters a b
}

@test "without a command the token is what comes out, and nothing else" {
	run -0 --separate-stderr rlock lock --owner job-1 --lease 1m --fence a
	assert_output 1
	# shellcheck disable=SC2154
	assert_equal "$stderr" ''
	run -0 --separate-stderr bash -c 'rlock lock --pid $$ --fence b; exit'
	assert_output 1
	assert_equal "$stderr" ''
	run -0 bash -c 'rlock lock --pid $$ c; exit'
	assert_output ''
}

@test "inside \$( ) the token comes at once, and the script has the lock" {
	local shell
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			token=$(rlock lock --pid $$ --fence a) || exit
			echo "token $token"
			$REDIS exists a
			other=$(rlock fair --pid $$ --fence a b)
			echo "$other"
			rlock unlock a b
			rlock unlock a
			$REDIS exists a b
		'
		assert_line -n 0 --regexp '^token [13]$'
		assert_line -n 1 1
		assert_line -n 4 0
		assert_equal "${#lines[@]}" 5
	done
	assert_equal "$(counter a)" 4
	assert_equal "$(counter b)" 2
	only_counters a b
}

@test "tokens beyond 2^53 are told to the last digit" {
	redis set 'redisson_lock_token:{a}' 9007199254740993 >/dev/null
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 9007199254740994
	run -0 rlock lock --owner job-1 --lease 1m --fence a
	assert_output 9007199254740995
	assert_equal "$(counter a)" 9007199254740995
}

@test "a fair lock has tokens as a plain one has" {
	run -0 rlock fair --fence a -- sh -c 'echo $RLOCK_TOKEN $RLOCK_MODE'
	assert_output '1 fair'
	run -0 rlock fair --owner job-1 --lease 1m --fence a
	assert_output 2
	in_background sh -c 'exec rlock fair --fence a -- printenv RLOCK_TOKEN >first'
	wait_until 5 has_in_queue a 1
	in_background sh -c 'exec rlock fair --fence a -- printenv RLOCK_TOKEN >second'
	wait_until 5 has_in_queue a 2
	assert_equal "$(counter a)" 2
	run -0 rlock unlock --owner job-1 a
	ended_with 0 "${BACKGROUND[0]}"
	ended_with 0 "${BACKGROUND[1]}"
	assert_equal "$(cat first second)" "3
4"
	only_counters a
}

# ---- what is issued a token ----

@test "a lock that has a counter is issued a token without --fence, so that its tokens grow with each holder" {
	run -0 rlock run --fence a -- true
	run -0 rlock run a -- rlock fair a -- ask_redis "$SERVER_SOCKET" get 'redisson_lock_token:{a}'
	assert_output 3
	run -0 sh -c 'rlock lock --owner job-1 --lease 1m a; rlock unlock --owner job-1 a; exit'
	assert_output ''
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 5
	only_counters a
}

@test "a lock that was never fenced gets no counter" {
	run -0 rlock run a -- true
	run -0 rlock fair a -- true
	no_keys
}

@test "a configuration file that asks for tokens is ignored by read and write locks" {
	echo 'fence = yes' >conf
	export RLOCK_CONFIG=$PWD/conf
	run -0 rlock run a -- printenv RLOCK_TOKEN
	assert_output 1
	run -0 rlock rlock b -- sh -c 'echo "[$RLOCK_TOKEN]"'
	assert_output '[]'
	run -0 rlock wlock b -- sh -c 'echo "[$RLOCK_TOKEN]"'
	assert_output '[]'
	run -0 rlock wlock --owner job-1 --lease 1m b
	assert_output ''
	run -0 rlock unlock --owner job-1 b
	only_counters a
}

@test "read and write locks leave a counter of their name alone" {
	redis set 'redisson_lock_token:{a}' 41 >/dev/null
	run -0 rlock rlock a -- true
	run -0 rlock wlock a -- true
	assert_equal "$(counter a)" 41
	only_counters a
}

@test "a counter of a name with braces is beside it as it is" {
	run -0 rlock run --fence 'a{b}c' -- ask_redis "$SERVER_SOCKET" get 'redisson_lock_token:a{b}c'
	assert_output 1
	assert_equal "$(redis keys '*')" 'redisson_lock_token:a{b}c'
}

# bad_counter COMMAND [ARG...]: by which redis-cli makes one. 78 for all that would use it, and nothing is locked.
bad_counter() {
	local verb fence
	redis del 'redisson_lock_token:{a}' >/dev/null
	redis "$@" >/dev/null
	for verb in run fair; do
		for fence in '' --fence; do
			run -78 rlock "$verb" $fence b a -- touch ran
			assert_one_line '^rlock: a: the fencing counter redisson_lock_token:\{a\} holds no integer'
			assert_equal "$(redis keys '*')" 'redisson_lock_token:{a}'
		done
	done
	refute file_exists ran
}

@test "a counter that holds no integer: 78, with and without --fence, and nothing is locked" {
	local value
	bad_counter rpush 'redisson_lock_token:{a}' 1
	for value in '' x 1.5 ' 1' 01 -0 9223372036854775807 9223372036854775808 -9223372036854775809; do
		bad_counter set 'redisson_lock_token:{a}' "$value"
	done
}

@test "a counter may hold any integer but the last one" {
	local value
	for value in 0 -1 9223372036854775806 -9223372036854775808; do
		redis set 'redisson_lock_token:{a}' "$value" >/dev/null
		rlock run a -- true
		assert_equal "$(redis get 'redisson_lock_token:{a}')" $((value + 1))
	done
}
