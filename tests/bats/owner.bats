#!/usr/bin/env bats
# Locks that belong to a name instead of a process: the steps of a job, in shells that know nothing of each
# other.

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() { common_setup; }
teardown() { watchful_teardown; }

@test "one shell locks for an owner, another one renews and a third one unlocks" {
	run -0 sh -c 'rlock lock --owner job-1 --lease 1m a; exit'
	is_held a
	redis pexpire a 5000 >/dev/null
	run -0 sh -c 'rlock renew --owner job-1 --lease 1m a; exit'
	assert_output --regexp '^(1m00s|59s)$'
	ttl_is_above a 50000
	run -0 sh -c 'rlock unlock --owner job-1 a; exit'
	assert_output ''
	no_keys
}

@test "a lock for an owner leaves no process and no file" {
	run -0 rlock lock --owner job-1 --lease 1m a
	assert_output ''
	nothing_runs
	no_hold_files
}

@test "a lock for an owner needs no runtime directory" {
	export RLOCK_RUNTIME_DIR=/proc/nowhere
	run -0 rlock lock --owner job-1 --lease 1m a
	run -0 rlock renew --owner job-1 a
	run -0 rlock unlock --owner job-1 a
	assert_output ''
	no_keys
}

@test "a second owner is turned away" {
	run -0 rlock lock --owner job-1 --lease 1m a
	run -75 rlock lock --owner job-2 --lease 1m -n a
	assert_output ''
	run -75 rlock run -n a -- true
	has_count a 1
}

@test "an owner that holds nothing is told which one holds the lock" {
	local verb
	run -0 rlock lock --owner job-101 --lease 1m --note 'deploy step' a
	for verb in renew unlock; do
		run -1 rlock "$verb" --owner job-102 a
		assert_output "rlock: a: not held by owner 'job-102': held by job-101 (deploy step): use one id for all jobs of a pipeline"
	done
	has_count a 1
}

@test "an owner that holds nothing is told how many hold a semaphore, and of a process without a word of pipelines" {
	local id
	for id in 1 2 3; do
		run -0 rlock sem --permits 3 --owner "job-$id" --lease 1m --note "import $id" a
	done
	run -1 rlock unlock --owner job-4 a
	assert_output --regexp "^rlock: a: not held by owner 'job-4': held by job-[123] \(import [123]\) and 2 more: use one id for all jobs of a pipeline$"
	hold_in_background b --note backup
	run -1 rlock unlock --owner job-4 b
	assert_output --regexp "^rlock: b: not held by owner 'job-4': held by [^ ]+:$PID \(backup\)$"
}

@test "an owner whose lock has expired is told that it is free" {
	run -1 rlock renew --owner job-1 a
	assert_output "rlock: a: not held by owner 'job-1': it is free: its lease may have expired"
}

@test "a second owner waits for the first one's unlock" {
	run -0 rlock lock --owner job-1 --lease 1m a
	in_background rlock lock --owner job-2 --lease 1m a
	wait_until 5 has_waiters a
	run -0 rlock unlock --owner job-1 a
	ended_with 0
	run -0 rlock unlock --owner job-2 a
	no_keys
}

@test "the same owner re-enters, and has to unlock as often" {
	run -0 rlock lock --owner job-1 --lease 1m a
	run -0 rlock lock --owner job-1 --lease 1m -n a
	has_count a 2
	run -0 rlock unlock --owner job-1 a
	has_count a 1
	run -0 rlock unlock --owner job-1 a
	no_keys
}

@test "re-entering with a shorter lease does not shorten the lock" {
	run -0 rlock lock --owner job-1 --lease 1m a
	run -0 rlock lock --owner job-1 --lease 2s a
	ttl_is_above a 50000
	run -0 rlock unlock --owner job-1 a
	ttl_is_above a 50000
}

@test "renew never makes a lock end sooner" {
	run -0 rlock lock --owner job-1 --lease 1m a
	run -0 rlock renew --owner job-1 --lease 2s a
	assert_output --regexp '^(1m00s|5[0-9]s)$'
	ttl_is_above a 50000
}

@test "renew prints a TTL in the form of status" {
	run -0 rlock lock --owner job-1 --lease 1h a
	run -0 rlock renew --owner job-1 --lease 1h a
	assert_output --regexp '^(1h00m|59m5[0-9]s)$'
}

@test "renew without a lease renews for 30 seconds" {
	run -0 rlock lock --owner job-1 --lease 10s a
	run -0 rlock renew --owner job-1 a
	assert_output --regexp '^(30s|2[5-9]s)$'
	ttl_is_above a 25000
}

@test "an owner may be 128 letters, digits, dots, underscores and dashes" {
	local id
	id=A.b_c-$(printf '9%.0s' {1..122})
	run -0 rlock lock --owner "$id" --lease 1m a
	run -0 rlock unlock --owner "$id" a
	no_keys
}

@test "unlock and renew of what the owner does not hold give 1" {
	run -1 rlock unlock --owner job-1 a
	assert_one_line '^rlock: a: .+$'
	run -1 rlock renew --owner job-1 a
	assert_one_line '^rlock: a: .+$'
	no_keys
}

@test "an owner can't unlock or renew the lock of another one" {
	run -0 rlock lock --owner job-1 --lease 10s a
	run -1 rlock unlock --owner job-2 a
	run -1 rlock renew --owner job-2 --lease 1m a
	has_count a 1
	run -1 ttl_is_above a 10000
}

@test "the lock of an owner ends with its lease" {
	run -0 rlock lock --owner job-1 --lease 1s a
	wait_until 3 no_keys
	run -1 rlock unlock --owner job-1 a
	run -0 rlock lock --owner job-2 --lease 1m -n a
}

@test "several names are locked, renewed and unlocked for an owner" {
	run -0 rlock lock --owner job-1 --lease 10s a b
	run -0 rlock renew --owner job-1 --lease 1m a b
	ttl_is_above a 50000
	ttl_is_above b 50000
	run -0 rlock unlock --owner job-1 a b
	no_keys
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
