#!/usr/bin/env bats
# Locks that belong to a name instead of a process: the steps of a job, in shells that know nothing of each
# other.

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() { common_setup; }
teardown() { watchful_teardown; }

@test "one shell locks for an owner, another one renews and a third one unlocks, without a process, a file or a runtime directory" {
	export RLOCK_RUNTIME_DIR=/proc/nowhere
	run -0 sh -c 'rlock lock --owner job-1 --lease 1m a b; exit'
	assert_output ''
	nothing_runs
	redis pexpire a 5000 >/dev/null
	run -0 sh -c 'rlock renew --owner job-1 --lease 1h a b; exit'
	assert_output --regexp '^(1h00m|59m5[0-9]s)'
	ttl_is_above a 3500000
	ttl_is_above b 3500000
	run -0 sh -c 'rlock unlock --owner job-1 a b; exit'
	assert_output ''
	no_keys
}

@test "a second owner is turned away, and can't unlock or renew, but is told which one holds the lock" {
	local verb
	run -0 rlock lock --owner job-101 --lease 10s --note 'deploy step' a
	run -75 rlock lock --owner job-102 --lease 1m -n a
	assert_output ''
	run -75 rlock run -n a -- true
	for verb in renew unlock; do
		run -1 rlock "$verb" --owner job-102 a
		assert_output "rlock: a: not held by owner 'job-102': held by job-101 (deploy step): use one id for all jobs of a pipeline"
	done
	has_count a 1
	run -1 ttl_is_above a 10000
	run -1 rlock renew --owner job-1 b
	assert_output "rlock: b: not held by owner 'job-1': it is free: its lease may have expired"
}

@test "an owner that holds nothing is told how many hold a semaphore, and of a process without a word of pipelines" {
	local id
	for id in 1 2; do
		run -0 rlock sem --permits 2 --owner "job-$id" --lease 1m --note "import $id" a
	done
	run -1 rlock unlock --owner job-4 a
	assert_output --regexp "^rlock: a: not held by owner 'job-4': held by job-[12] \(import [12]\) and 1 more: use one id for all jobs of a pipeline$"
	hold_in_background b --note backup
	run -1 rlock unlock --owner job-4 b
	assert_output --regexp "^rlock: b: not held by owner 'job-4': held by [^ ]+:$PID \(backup\)$"
}

@test "the same owner re-enters, and has to unlock as often; neither a shorter lease nor a renewal makes the lock end sooner" {
	local id
	# As long as one may be.
	id=A.b_c-$(printf '9%.0s' {1..122})
	run -0 rlock lock --owner "$id" --lease 1m a
	run -0 rlock lock --owner "$id" --lease 2s -n a
	has_count a 2
	ttl_is_above a 50000
	run -0 rlock renew --owner "$id" --lease 2s a
	assert_output --regexp '^(1m00s|5[0-9]s)$'
	run -0 rlock unlock --owner "$id" a
	has_count a 1
	ttl_is_above a 50000
	run -0 rlock unlock --owner "$id" a
	no_keys
}

@test "renew without a lease renews for 30 seconds" {
	run -0 rlock lock --owner job-1 --lease 10s a
	run -0 rlock renew --owner job-1 a
	assert_output --regexp '^(30s|2[5-9]s)$'
	ttl_is_above a 25000
}

@test "of an owner's several names one can be unlocked alone" {
	run -0 rlock lock --owner job-1 --lease 1m a b
	run -0 rlock unlock --owner job-1 b
	is_free b
	is_held a
	run -1 rlock unlock --owner job-1 a b
	no_keys
}

@test "the lock of an owner is not the one of the process that took it" {
	run -1 bash -c 'rlock lock --owner job-1 --lease 1m a; rlock unlock a; exit'
	is_held a
	run -75 bash -c 'rlock lock --owner job-2 --lease 1m b; rlock run -n b -- true; exit'
}

@test "unlock --force names an owner as --holder takes it" {
	run -0 rlock lock --owner job-1 --lease 1m a
	run -75 rlock run -w 1ms a -- true
	[[ $output =~ \(([^\)]*)\),\ for ]]
	run -0 rlock unlock --force --holder "${BASH_REMATCH[1]}" a
	no_keys
}
