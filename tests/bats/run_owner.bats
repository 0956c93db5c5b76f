#!/usr/bin/env bats
# rlock run --owner ID: COMMAND runs under the lock of ID, which rlock re-enters if ID holds it, and acquires otherwise. What ID holds
# afterwards, and that unlock and renew for ID do not act on COMMAND's hold.

load ../lib/usual
load ../lib/permits
load ../lib/own_servers

KINDS='run fair read write'

# lock_verb VERB: prints the verb that acquires this kind without a COMMAND.
lock_verb() {
	[ "$1" = run ] && echo lock || echo "$1"
}

# count_of_ci NAME: prints the hold count that Redisson sees for the owner ci, or for its write lock.
count_of_ci() {
	echo "$(redis hget "$1" ci:0)$(redis hget "$1" ci:0:write)"
}

@test "run --owner re-enters the lock of ID immediately, does not shorten its lease, and leaves ID's hold as it was" {
	local verb
	for verb in $KINDS; do
		run -0 rlock "$(lock_verb "$verb")" --owner ci --lease 1h a
		run -0 rlock "$verb" -n --owner ci -t 9s a -- sh -c "$REDIS hvals a; $REDIS pttl a; echo \$RLOCK_OWNER"
		assert_line 2
		assert_line --regexp '^3[56]..000$|^3[0-9]{6}$'
		assert_line ci:0
		assert_equal "$(count_of_ci a)" 1
		ttl_is_above a 3500000
		run -0 rlock unlock --owner ci a
		no_keys
	done
}

@test "run --owner renews the lock when the lease of ID ends before its COMMAND" {
	local verb
	for verb in $KINDS; do
		rlock "$(lock_verb "$verb")" --owner ci --lease 1s "$verb"
		in_background rlock "$verb" --owner ci -t 9s "$verb" -- run_until_ended
		wait_until 5 has_child "$PID" run_until_ended
	done
	pause_for 1.5
	for verb in $KINDS; do
		is_held "$verb"
	done
	end_commands
	all_ended_with 0
	no_keys
}

@test "run --owner acquires and renews the lock if ID does not hold it, and waits for another holder" {
	local verb
	for verb in $KINDS; do
		run -0 rlock "$verb" --owner ci -t 9s a -- sh -c "wait_until_true '[ \"\$($REDIS pttl a)\" -lt 8000 ]' &&
			wait_until_true '[ \"\$($REDIS pttl a)\" -gt 8000 ]' && $REDIS hvals a"
		assert_line 1
		no_keys
	done
	rlock lock --owner other --lease 1m a
	run -75 rlock run -n --owner ci a -- touch ran
	assert [ ! -e ran ]
	in_background rlock run --owner ci a -- touch ran
	wait_until 5 has_waiters a 1
	rlock unlock --owner other a
	ended_with 0
	assert [ -e ran ]
	no_keys
}

@test "unlock --owner and renew --owner never act on the hold of a COMMAND" {
	local verb
	for verb in $KINDS; do
		in_background rlock "$verb" --owner ci -t 9s a -- run_until_ended
		wait_until 5 has_child "$PID" run_until_ended
		run -1 rlock unlock --owner ci a
		assert_output "rlock: a: not held by owner 'ci' itself, but by a command of 'rlock run --owner', which releases it when it ends"
		run -1 rlock renew --owner ci --lease 1h a
		run -1 ttl_is_above a 9000
		rlock "$(lock_verb "$verb")" --owner ci --lease 1m a
		run -0 rlock renew --owner ci --lease 5m a
		ttl_is_above a 200000
		run -0 rlock unlock --owner ci a
		assert_equal "$(count_of_ci a)" 1
		run -1 rlock unlock --owner ci a
		end_commands
		ended_with 0
		rm end-commands
		no_keys
	done
}

@test "after run --owner and its renewer were killed ID holds the lock as before, and unlock --owner releases it" {
	local verb
	for verb in $KINDS; do
		rlock "$(lock_verb "$verb")" --owner ci --lease 5m "$verb"
		in_background rlock "$verb" --owner ci -t 5s "$verb" -- run_until_ended
		wait_until 5 has_child "$PID" run_until_ended
		kill_whole "$PID"
	done
	pause_for 5.2
	for verb in $KINDS; do
		ttl_is_above "$verb" 30000
		run -0 rlock unlock --owner ci "$verb"
		assert_output ''
	done
	no_keys
}

@test "SIGTERM to run --owner ends its COMMAND, and ID holds the lock as before" {
	rlock lock --owner ci --lease 1m a
	in_background rlock run --owner ci a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	kill -TERM "$PID"
	ended_with 143
	assert_equal "$(hold_count a)" 1
	ttl_is_above a 30000
	run -0 rlock unlock --owner ci a
	no_keys
}

@test "calls in the COMMAND of run --owner re-enter the lock, which stays held after them" {
	run -0 rlock run --owner ci a -- sh -c "rlock run -n a -- $REDIS hvals a; rlock run -n --owner ci a -- $REDIS hvals a; $REDIS hvals a"
	assert_output $'2\n2\n1'
	run -0 rlock write --owner ci a -- sh -c 'rlock read -n a -- echo inside'
	assert_output inside
	run -64 rlock read --owner ci a -- rlock write -n --owner ci a -- true
	assert_output --partial 'deadlock'
	no_keys
}

@test "run --owner in the COMMAND of another owner does not wait for its own ancestor" {
	run -64 timeout 10 rlock run a -- rlock run --owner ci a -- echo inside
	assert_output --regexp '^rlock: a: deadlock: held by an ancestor of this process, .*; --owner names another owner; leave it out, or give it to the outer call, too$'
	no_keys
}

@test "lock --owner for a lock that an rlock above it holds is a deadlock, 64" {
	run -64 rlock run a -- timeout -s KILL 20 rlock lock --owner ci --lease 30s a
	assert_one_line '^rlock: a: deadlock: held by an ancestor of this process, .*; --owner names another owner; leave it out, or give it to the outer call, too$'
}

@test "with several names run --owner re-enters those that ID holds, and acquires the others" {
	rlock lock --owner ci --lease 1m b
	run -0 rlock run -n --owner ci a b c -- sh -c "$REDIS hvals a; $REDIS hvals b; $REDIS hvals c"
	assert_output $'1\n2\n1'
	keys_are b 'rlock_holds:{b}'
	run -0 rlock unlock --owner ci b
	no_keys
}

@test "sem --owner with a COMMAND acquires a permit of its own, which unlock --owner does not release" {
	rlock sem --permits 2 --owner ci --lease 1m a
	in_background rlock sem --permits 2 --owner ci a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	has_held_permits a 2
	run -0 rlock renew --owner ci --lease 5m a
	run -0 rlock unlock --owner ci a
	has_held_permits a 1
	run -1 rlock unlock --owner ci a
	has_held_permits a 1
	end_commands
	ended_with 0
	has_held_permits a 0
}

@test "run --owner accepts --lease, --note and --remember" {
	run -0 rlock run --owner ci --lease 20s --note 'deploy step' --remember 1m a -- rlock status a
	assert_output --partial 'deploy step'
	run -1 rlock status a
	assert_output --partial 'deploy step'
}
