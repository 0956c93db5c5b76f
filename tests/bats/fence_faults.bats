#!/usr/bin/env bats
# Fencing tokens when something fails: one that can't be told, since standard output is full or closed, a reply that gets
# lost, a server that is full or refuses.

# In single quotes stand whole scripts.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/fencing
load ../lib/proxying

setup_file() { start_warm_server run fair; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	redis config set maxmemory 0 >/dev/null
	watchful_teardown
}

# ---- where the token can't be told ----

# not_told VERB [REDIRECTION]: 71, and nothing stays locked, whatever the lock would have been for.
not_told() {
	local way
	for way in '--pid $$' '--owner job-1 --lease 1m'; do
		run -71 bash -c "rlock $1 $way --fence a $2; exit"
		assert_one_line '^rlock: .*standard output'
		only_counters a
		nothing_runs
		no_hold_files
	done
}

@test "when standard output is full there is no token, no lock, and 71" {
	not_told lock '>/dev/full'
	not_told fair '>/dev/full'
}

@test "when standard output is closed there is no token, no lock, and 71" {
	not_told lock '>&-'
	not_told fair '>&-'
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
	run bash -c '
		exec 5<>pipe 6>pipe 5<&-
		rlock lock --pid $$ --fence a >&6
		echo "status $?"'
	refute_line 'status 0'
	wait_until 2 only_counters a
	nothing_runs
	no_hold_files
}

@test "a lock that could not be told is acquired by a waiter, with the next token" {
	in_background bash -c 'exec 5>/dev/full; rlock lock --owner job-1 --lease 1m --fence a >&5'
	ended_with 71
	run -0 rlock run -n --fence a -- printenv RLOCK_TOKEN
	assert_output 2
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
	local verb
	start_proxy
	for verb in run fair; do
		proxy drop-reply "$ACQUIRE"
		told_once "$verb"
		proxy drop-reply "$ACQUIRE"
		told_once "$verb" -n
		proxy drop-reply "$ACQUIRE" 3
		told_once "$verb" -w 10s
		proxy cut-before "$ACQUIRE"
		told_once "$verb"
	done
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

@test "the reply for several names is lost: each was issued one token" {
	start_proxy
	proxy drop-reply "$ACQUIRE" 2
	run -0 rlock run --fence b a c -- printenv RLOCK_TOKEN
	assert_output "1
1
1"
	faults_happened
	assert_equal "$(counter a)$(counter b)$(counter c)" 111
	only_counters a b c
}

@test "the reply to a script's acquire is lost: the token that it reads is the lock's" {
	start_proxy
	proxy drop-reply "$ACQUIRE"
	run -0 bash -c 'token=$(rlock lock --pid $$ --fence a) && echo "$token" && $REDIS hvals a; rlock unlock a; exit'
	assert_output "1
1"
	assert_equal "$(counter a)" 1
	faults_happened
}

@test "the reply is lost where the counter is a time in microseconds: the token that is told is the counter's" {
	start_proxy
	redis set 'redisson_lock_token:{a}' 1795173909549122 >/dev/null
	proxy drop-reply "$ACQUIRE"
	told_once run
	assert_equal "$(counter a)" 1795173909549123
}

@test "replies that take long: the request is repeated, and the token stays" {
	start_proxy
	proxy delay 500
	run -0 rlock run -w 20s -t 2s --fence a -- printenv RLOCK_TOKEN
	assert_output 1
	assert_equal "$(counter a)" 1
}

@test "a server that is full: an error, no token and no lock" {
	redis config set maxmemory 1 >/dev/null
	run -69 rlock run --fence a -- touch ran
	assert_one_line '^rlock: a: .*memory'
	run -69 rlock lock --owner job-1 --lease 1m --fence a
	assert_one_line '^rlock: a: .*memory'
	no_keys
	refute file_exists ran
}

@test "a user that may not increment the counter is told the right that is missing, and nothing is locked" {
	redis acl setuser default -incr >/dev/null
	run rlock run --fence a -- touch ran
	redis acl setuser default +incr >/dev/null
	assert_equal "$status" 77
	assert_one_line '^rlock: a: .*incr'
	refute file_exists ran
	no_keys
}
