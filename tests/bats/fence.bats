#!/usr/bin/env bats
# Fencing tokens: a counter that grows with each acquisition by any client, so that a storage system can reject a holder that was
# overtaken. The counter is that of Redisson's RFencedLock. Also tokens that cannot be printed, and replies that are lost.

load ../lib/usual
load ../lib/proxying

setup_file() { start_warm_server run fair; }

# token_is COUNT NAME: whether the token counter has this value.
token_is() {
	redis_says "$1" get "redisson_lock_token:{$2}"
}

# only_counters NAME...: whether only the counters of these locks are left, without a TTL.
only_counters() {
	local name
	for name; do
		redis_says -1 pttl "redisson_lock_token:{$name}" || return
	done
	redis_says $# dbsize
}

@test "each acquisition and each re-entry increments the token by one, exactly even beyond 2^53" {
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 1
	redis set 'redisson_lock_token:{a}' 9007199254740993 >/dev/null
	run -0 rlock lock --fence a -- sh -c '
		echo $RLOCK_TOKEN
		rlock run --fence a -- sh -c "echo \$RLOCK_TOKEN; rlock fair --fence a -- printenv RLOCK_TOKEN"
		echo $RLOCK_TOKEN'
	assert_equal "$(xargs <<<"$output")" '9007199254740994 9007199254740995 9007199254740996 9007199254740994'
	only_counters a
}

@test "without a command the token alone is printed immediately; with a command it is not printed" {
	run -0 rlock lock --fence a -- echo here
	assert_output here
	run -0 timeout 120 dash -c '
		token=$(rlock lock --pid $$ --fence a 2>&1) || exit
		echo "token $token"
		rlock fair --pid $$ --fence a b
		$REDIS exists a b
		rlock unlock a b
		rlock unlock a
		rlock lock --pid $$ c; exit'
	assert_equal "$(xargs <<<"$output")" 'token 2 3 1 2'
	wait_until 5 only_counters a b
}

@test "tokens of several names are printed one a line, in the order of the names" {
	redis set 'redisson_lock_token:{b}' 10 >/dev/null
	redis set 'redisson_lock_token:{c}' 20 >/dev/null
	run -0 rlock run --fence c a b -- printenv RLOCK_TOKEN
	assert_output $'21\n1\n11'
	run -0 rlock lock --owner job-1 --lease 1m --fence b c a
	assert_output $'12\n22\n2'
	run -0 rlock unlock --owner job-1 a b c
	only_counters a b c
	# A re-entry must also increment the token.
	run -0 rlock run --fence a -- rlock run --fence b a -- printenv RLOCK_TOKEN
	assert_output $'13\n4'
}

@test "a lock that has a token counter is issued a token also without --fence, but does not show it; a write lock is issued none" {
	redis set 'redisson_lock_token:{a}' 41 >/dev/null
	RLOCK_TOKEN=7 run -1 rlock run a -- printenv RLOCK_TOKEN
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 43
	run -1 rlock run --fence a -- rlock run b -- printenv RLOCK_TOKEN
	run -0 rlock lock --owner job-1 --lease 1m a
	assert_output ''
	run -0 rlock unlock --owner job-1 a
	token_is 45 a
	# In the configuration file, `fence` must be ignored for read and write locks.
	echo 'fence = yes' >conf
	RLOCK_CONFIG=$PWD/conf run -1 rlock write a -- printenv RLOCK_TOKEN
	token_is 45 a
	# A lock that was never acquired with --fence must have no counter.
	only_counters a
}

@test "with a token counter that is no integer rlock exits with 78, with and without --fence, and acquires no lock" {
	local value words
	for value in list '' x 1.5 01 9223372036854775807 -9223372036854775809; do
		redis flushall >/dev/null
		if [ "$value" = list ]; then
			redis rpush 'redisson_lock_token:{a}' 1 >/dev/null
		else
			redis set 'redisson_lock_token:{a}' "$value" >/dev/null
		fi
		for words in run 'fair --fence'; do
			# shellcheck disable=SC2086
			run -78 rlock $words b a -- touch ran
			assert_one_line '^rlock: a: the fencing counter redisson_lock_token:\{a\} holds no integer'
			keys_are 'redisson_lock_token:{a}'
		done
	done
	refute file_exists ran
	redis set 'redisson_lock_token:{a}' -9223372036854775806 >/dev/null
	rlock run a -- true
	token_is -9223372036854775805 a
}

@test "when standard output is full, closed or not read, the lock is released with 71, and a waiter gets the next token" {
	local words
	mkfifo pipe
	for words in 'lock --pid $$ --fence a >/dev/full' 'lock --pid $$ --fence a >&6' \
		'fair --owner job-1 --lease 1m --fence a >&-'; do
		run -71 bash -c "trap '' PIPE; exec 5<>pipe 6>pipe 5<&-; rlock $words; exit"
		assert_one_line '^rlock: .*standard output'
		only_counters a
		wait_until 5 no_rlock_runs
		wait_until 5 no_hold_files
	done
	run -0 bash -c 'rlock run -n --fence a -- sh -c "echo \$RLOCK_TOKEN >token" >&-; exit'
	file_has_line token 4
}

@test "when the reply to the acquire is lost, the command gets the token that was issued, and no second one is issued" {
	start_proxy
	# Set the counter to 2^53 + 1, which a double cannot represent.
	redis set 'redisson_lock_token:{a}' 9007199254740993 >/dev/null
	proxy drop-reply "$ACQUIRE"
	run -0 rlock run -w 20s --fence a -- sh -c 'echo $RLOCK_TOKEN; $REDIS get "redisson_lock_token:{a}"; $REDIS hvals a'
	assert_equal "$(xargs <<<"$output")" '9007199254740994 9007199254740994 1'
	faults_happened
	only_counters a
}
