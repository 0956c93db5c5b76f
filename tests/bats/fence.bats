#!/usr/bin/env bats
# Fencing tokens: a number that grows with each time a lock is acquired, by any client, so that a holder that has been
# overtaken can be told from the present one. The counter is that of Redisson's RFencedLock. Tokens that can't be told, since
# standard output is full or closed; and replies that get lost.

load ../lib/usual
load ../lib/fencing
load ../lib/proxying

setup_file() { start_warm_server run fair; }

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

@test "tokens beyond 2^53 are told to the last digit" {
	redis set 'redisson_lock_token:{a}' 9007199254740993 >/dev/null
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 9007199254740994
	run -0 rlock lock --owner job-1 --lease 1m --fence a
	assert_output 9007199254740995
	assert_equal "$(counter a)" 9007199254740995
}

# ---- where the token is told ----

@test "only with --fence is the command told a token, and not that of a lock outside" {
	redis set 'redisson_lock_token:{a}' 41 >/dev/null
	RLOCK_TOKEN=7 run -1 rlock run a -- printenv RLOCK_TOKEN
	assert_output ''
	run -0 rlock run --fence a -- printenv RLOCK_TOKEN
	assert_output 43
	run -1 rlock run --fence a -- rlock run b -- printenv RLOCK_TOKEN
	run -1 rlock run --fence a -- rlock rlock b -- printenv RLOCK_TOKEN
}

@test "with a command the token does not come out on standard output, without one it does, and nothing else" {
	run -0 rlock lock --fence a -- echo here
	assert_output here
	run -0 --separate-stderr rlock lock --owner job-1 --lease 1m --fence a
	assert_output 2
	# shellcheck disable=SC2154
	assert_equal "$stderr" ''
	run -0 bash -c 'rlock lock --pid $$ c; exit'
	assert_output ''
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
	# One that is re-entered is issued one as well.
	run -0 rlock run --fence a -- rlock run --fence b a -- printenv RLOCK_TOKEN
	assert_output "13
4"
}

@test "inside \$( ) the token comes at once, and the script has the lock" {
	run -0 timeout 10 dash -c '
		token=$(rlock lock --pid $$ --fence a) || exit
		echo "token $token"
		$REDIS exists a
		other=$(rlock fair --pid $$ --fence a b)
		echo "$other"
		rlock unlock a b
		rlock unlock a
		$REDIS exists a b
	'
	assert_output "token 1
1
2
1
0"
	only_counters a b
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
	# One that was never fenced gets no counter.
	run -0 rlock run b -- true
	only_counters a
}

@test "a configuration file that asks for tokens is ignored by read and write locks, which leave a counter alone" {
	local verb
	echo 'fence = yes' >conf
	export RLOCK_CONFIG=$PWD/conf
	run -0 rlock run a -- printenv RLOCK_TOKEN
	assert_output 1
	for verb in rlock wlock; do
		run -0 rlock "$verb" a -- sh -c 'echo "[$RLOCK_TOKEN]"'
		assert_output '[]'
	done
	run -0 rlock wlock --owner job-1 --lease 1m a
	assert_output ''
	run -0 rlock unlock --owner job-1 a
	assert_equal "$(counter a)" 1
	only_counters a
}

@test "a counter that holds no integer: 78, with and without --fence, and nothing is locked" {
	local value words
	for value in list '' x 1.5 01 9223372036854775807 -9223372036854775809; do
		redis del 'redisson_lock_token:{a}' >/dev/null
		if [ "$value" = list ]; then
			redis rpush 'redisson_lock_token:{a}' 1 >/dev/null
		else
			redis set 'redisson_lock_token:{a}' "$value" >/dev/null
		fi
		for words in run 'fair --fence'; do
			# shellcheck disable=SC2086
			run -78 rlock $words b a -- touch ran
			assert_one_line '^rlock: a: the fencing counter redisson_lock_token:\{a\} holds no integer'
			assert_equal "$(redis keys '*')" 'redisson_lock_token:{a}'
		done
	done
	refute file_exists ran
	redis set 'redisson_lock_token:{a}' -9223372036854775806 >/dev/null
	rlock run a -- true
	assert_equal "$(counter a)" -9223372036854775805
}

# ---- where the token can't be told ----

@test "when standard output is full or closed there is no token, no lock, and 71, and a waiter gets the next token" {
	local words
	for words in 'lock --pid $$ --fence a >/dev/full' 'fair --owner job-1 --lease 1m --fence a >&-'; do
		run -71 bash -c "rlock $words; exit"
		assert_one_line '^rlock: .*standard output'
		only_counters a
		nothing_runs
		no_hold_files
	done
	run -0 rlock run -n --fence a -- printenv RLOCK_TOKEN
	assert_output 3
}

@test "when standard output is not read nothing stays locked" {
	run bash -c '
		trap "" PIPE
		mkfifo pipe
		exec 5<>pipe 6>pipe 5<&-
		rlock lock --pid $$ --fence a >&6
		echo "status $?"'
	assert_line 'status 71'
	only_counters a
	nothing_runs
	no_hold_files
}

@test "a command whose standard output is closed is told its token all the same" {
	run -0 bash -c 'rlock run --fence a -- sh -c "echo \$RLOCK_TOKEN >token" >&-; exit'
	assert_equal "$(cat token)" 1
	only_counters a
}

# ---- faults ----

# told_once VERB [OPTION...]: the token that the command is told is the counter's, and only one was issued.
told_once() {
	local before
	before=$(counter a)
	run -0 rlock "$@" --fence a -- sh -c 'echo $RLOCK_TOKEN; $REDIS get "redisson_lock_token:{a}"; $REDIS hvals a'
	assert_output "$((before + 1))
$((before + 1))
1"
	faults_happened
	only_counters a
}

@test "the reply to the acquire is lost: the same token is told, and no second one issued" {
	start_proxy
	# A number that is no longer exact where all have a fraction.
	redis set 'redisson_lock_token:{a}' 9007199254740993 >/dev/null
	proxy drop-reply "$ACQUIRE"
	told_once run
	proxy drop-reply "$ACQUIRE"
	told_once fair -n
	proxy cut-before "$ACQUIRE"
	told_once run
}

@test "the reply is lost when a lock is re-entered: the token of that hold is told" {
	start_proxy
	run -0 rlock run --fence a -- sh -c '
		faultproxy -c "unix:$BATS_TEST_TMPDIR/control" drop-reply "redisson_lock_token:{a}" 2 >/dev/null
		rlock run --fence a -- sh -c "echo \$RLOCK_TOKEN; \$REDIS hvals a"
		$REDIS hvals a
	'
	assert_output "2
2
1"
	faults_happened
	assert_equal "$(counter a)" 2
}
