#!/usr/bin/env bats
# bats file_tags=long
# --replicas: a lock that too few replicas have acknowledged is not acquired; and a master that becomes a replica while a lock is held.

load ../lib/usual
load ../lib/replicas
load ../lib/proxying

setup() {
	directory_setup
	start_replicated_servers
}

teardown() {
	kill -CONT "$REPLICA" 2>/dev/null || :
	teardown_and_check_processes
}

is_empty() {
	[ "$(redis_at one dbsize)" = 0 ]
}

@test "the command begins when --replicas replicas have the lock; with too few rlock exits with 69 and leaves no lock" {
	run -0 rlock run -w 20s --replicas 1 a -- ask_redis two/redis.sock exists a
	assert_output 1
	for _ in 1 2 3; do
		run -69 rlock run -n --replicas 2 a -- touch begun
		[[ $output = *': 0 of 2 '* ]] || break
	done
	assert_one_line '^rlock: a: 1 of 2 replicas have acknowledged the lock in time; start replicas, or lower --replicas$'
	# --connect-timeout must not limit the wait for replicas.
	run -69 rlock fair -n --connect-timeout 0.5s --replicas 2 a -- touch begun
	assert_one_line '^rlock: a: [01] of 2 replicas have acknowledged the lock in time; start replicas, or lower --replicas$'
	is_empty
	run -0 bash -c 'rlock lock -w 20s --replicas 1 --pid $$ a && rlock renew --replicas 1 a && rlock unlock a'
	run -69 bash -c 'rlock lock --pid $$ a; rlock renew --replicas 2 a; code=$?; rlock unlock a; exit $code'
	is_empty
	# The permits must have been returned.
	run -0 rlock sem -w 20s --replicas 1 --permits 3 --take 2 a -- ask_redis two/redis.sock get a
	assert_output 1
	run -69 rlock sem -n --replicas 2 --permits 3 a -- touch begun
	assert [ ! -e begun ]
	assert_equal "$(redis_at one get a)" 3
	assert_equal "$(redis_at one zcard '{a}:timeout')" 0
}

@test "a waiter retries until there are enough replicas, or exits with 69 when its wait time is over" {
	kill -STOP "$REPLICA"
	run_timed_out 69 rlock run -w 3s --replicas 1 a -- touch entered
	assert_one_line '^rlock: a: 0 of 1 replicas have acknowledged the lock in time; start replicas, or lower --replicas$'
	is_empty
	in_background rlock run -w 60s --replicas 1 a -- touch entered
	stays_true_for 1 is_running "$PID"
	assert [ ! -e entered ]
	kill -CONT "$REPLICA"
	ended_with 0 "$PID"
	assert [ -e entered ]
	is_empty
}

@test "a replica may be down for less than the lease; after that the command is terminated, 76" {
	in_background rlock run -w 60s -t 24s --replicas 1 a -- sh -c 'echo $$ >inner; exec run_until_ended'
	wait_until 20 [ -s inner ]
	# Stop the replica before a renewal is due, when 16 s are left, and continue it soon after: the lock is lost 8 s after that time.
	SERVER_SOCKET=$PWD/one/redis.sock wait_until 12 ttl_is_below a 18400
	kill -STOP "$REPLICA"
	stays_true_for 3.6 is_running "$PID"
	kill -CONT "$REPLICA"
	stays_true_for 4 is_running "$PID"
	kill -STOP "$REPLICA"
	ended_with 76 "$PID"
	is_gone "$(<inner)"
}

@test "a user without the right to WAIT gets 77, and no lock is left" {
	redis_at one acl setuser default -wait >/dev/null
	run -77 rlock run --replicas 1 a -- touch begun
	assert_one_line "^rlock: a: denied by the server: .*'wait'.*[+]wait$"
	assert [ ! -e begun ]
	is_empty
}

@test "a server that becomes a replica before the replicas have acknowledged a lock grants none: 69" {
	# Load the script into the server.
	run -0 rlock run a -- true
	SERVER_SOCKET=$PWD/one/redis.sock start_proxy
	# Let the first request pass, which only asks whether the lock is busy.
	proxy spare evalsha
	proxy hold-reply evalsha
	record_stderr rlock run -n --connect-timeout 20s --replicas 1 a -- touch begun
	wait_until 5 is_held_at one a
	wait_until 5 eval 'proxy state | grep -q held=1'
	redis_at one replicaof 127.0.0.1 1 >/dev/null
	proxy release
	ended_with 69
	run -0 cat stderr
	assert_one_line '^rlock: a: .* is a replica: it can grant no lock; name its master'
	assert [ ! -e begun ]
}

@test "a connection that ends between a grant and WAIT leaves the lock unconfirmed, whatever a new connection says: 69" {
	# Load the script into the server.
	run -0 rlock run a -- true
	# WAIT counts also the stopped replica if nothing has been executed over its connection: not even CLIENT SETNAME.
	redis_at one acl setuser default -client >/dev/null
	SERVER_SOCKET=$PWD/one/redis.sock start_proxy
	kill -STOP "$REPLICA"
	# Let the first request pass, which only asks whether the lock is busy.
	proxy spare evalsha
	proxy hold-reply evalsha
	record_stderr rlock run -n --connect-timeout 20s --replicas 1 a -- touch begun
	wait_until 5 is_held_at one a
	wait_until 5 eval 'proxy state | grep -q held=1'
	# Stop rlock until its connection has ended. Otherwise it could send WAIT over that connection, and the test would show nothing.
	find_children_of_rlock "$PID"
	kill -STOP "$PID" "${CHILDREN[@]}"
	proxy release
	proxy cut
	# Let the renewer go first: rlock would replace one that is late, and the test would show nothing.
	kill -CONT "${CHILDREN[@]}"
	wait_until 10 is_gone "${CHILDREN[0]}"
	kill -CONT "$PID"
	ended_with 69
	assert [ ! -e begun ]
	wait_until 5 is_empty
}

@test "a holder whose master becomes a replica keeps its lock at the new master, where a waiter acquires it later" {
	local holder
	record_stderr rlock run -t 12s a -- run_until_ended
	holder=$PID
	wait_until 5 is_held_at two a
	in_background rlock run -w 60s a -- sh -c 'ask_redis two/redis.sock exists a >waiter-saw'
	wait_until 5 eval '[ "$(redis_at one pubsub numsub "redisson_lock__channel:{a}" | tail -n 1)" = 1 ]'
	# Connections to the old master stay open.
	promote_replica
	redis_at one replicaof 127.0.0.1 1 >/dev/null
	redis_at two pexpire a 9000 >/dev/null
	SERVER_SOCKET=$PWD/two/redis.sock wait_until 10 is_renewed a 12000
	end_commands
	ended_with 0 "$holder"
	stderr_is_empty
	ended_with 0
	file_has_line waiter-saw 1
	[ "$(redis_at two dbsize)" = 0 ]
}

@test "unlock and renew on a replica exit with 69, as a replica cannot say that a lock is not held" {
	local verb
	for verb in "unlock --owner ci-1" "renew --owner ci-1" "unlock --force"; do
		# shellcheck disable=SC2086
		run -69 rlock $verb -u "unix://$PWD/two/redis.sock" a
		assert_output --partial 'is a replica: it can grant no lock; name its master'
	done
}
