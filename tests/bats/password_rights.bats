#!/usr/bin/env bats
# A user with few rights: those that the manual lists are enough for all that rlock does, and a missing one is named. acl.bats tries
# each right with each verb.

load ../lib/usual
load ../lib/rights
load ../lib/passwords

# times_out VERB: whether a wait for the held lock ends, and the message names the holder. False if the server was not reached in time.
times_out() {
	run rlock "$1" -w 1s nightly -- touch ran
	[ "$status" = 75 ] && [[ $output = *'held by'* ]]
}

# all_of_kind VERB LOCK_VERB WAIT_VERB: does all that is possible with a lock of this kind: VERB runs a command, LOCK_VERB
# acquires without one, WAIT_VERB waits.
all_of_kind() {
	local verb=$1 lock=$2 waiter=$3
	run -0 rlock "$verb" -n nightly nightly2 -- ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
	run -0 rlock "$verb" -t 6s nightly -- sleep 2.4
	assert_output ''
	run -0 rlock "$verb" --db 3 'nightly {x' -- rlock "$verb" --db 3 'nightly {x' -- true
	run -0 rlock "$verb" --at-least 50ms nightly -- true
	# Wait until the lock is free, since a reader would not wait for a hold of a reader that --at-least keeps.
	wait_until 5 no_keys
	run -0 rlock "$lock" --owner x --lease 20s nightly
	run -0 rlock renew --owner x --lease 20s nightly
	wait_until 5 times_out "$waiter"
	in_background rlock "$waiter" -w 20s nightly -- true
	wait_until 5 eval '! no_subscribers'
	run -0 rlock unlock --force nightly
	assert_output --regexp 'lock broken: it was held by .*x:0(:write)?\)?, which may still run$'
	ended_with 0
	wait_until 5 no_keys
}

@test "the rights that the manual lists are enough for everything, but not for other names" {
	create_limited_user
	export RLOCK_URL=$CI_URL
	all_of_kind run lock lock
	all_of_kind fair fair fair
	all_of_kind rlock rlock wlock
	all_of_kind wlock wlock rlock
	run -0 rlock run --fence nightly -- printenv RLOCK_TOKEN
	assert_equal "$(redis acl log)" ''
	# The message names the lock whose key the user may not access, and a server that denies it.
	run rlock run -n -u "$CI_URL" -u "$CI_URL/1" nightlyB other nightlyC -- touch ran
	assert_refused 77 'rlock: other: redis://'
	assert_output --partial ': denied by the server: '
}

@test "status for a user with the rights of plain locks only names the rights that its queue and its waiters need" {
	create_limited_user
	redis acl setuser ci -lrange -zcard >/dev/null
	run -0 rlock run -u "$CI_URL" nightly -- rlock status -u "$CI_URL" nightly
	assert_line "  not seen: queue: denied by the server: the user may not run 'lrange'; it needs the ACL rule +lrange"
	assert_line "  not seen: waiters: denied by the server: the user may not run 'zcard'; it needs the ACL rule +zcard"
	redis acl setuser ci +lrange +zcard >/dev/null
	run -0 rlock run -u "$CI_URL" nightly -- rlock status -u "$CI_URL" nightly
	refute_line --partial 'not seen'
}

@test "an acquisition is refused when two rights to undo it are missing, and nothing is left" {
	local missing verb
	# The scripts are flushed, so rlock must send them. rlock fair tries its rights by joining the queue, which it leaves by
	# LREM.
	while read -r missing; do
		redis acl deluser ci >/dev/null
		create_limited_user
		# shellcheck disable=SC2086
		redis acl setuser ci $missing >/dev/null
		redis script flush >/dev/null
		for verb in run fair rlock wlock 'sem --permits 2'; do
			[[ $missing != -lrem || $verb = fair ]] || continue
			# shellcheck disable=SC2086
			run rlock $verb -n -u "$CI_URL" nightly -- touch ran
			assert_refused 77 denied
			no_keys
		done
	done <<-'END'
		-eval
		-del -hdel
		-hdel -pexpire
		-del -pexpire
		-del -hdel -zrem -pexpire
		-hset -hdel -del
		-lrem
	END
}
