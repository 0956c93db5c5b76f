#!/usr/bin/env bats
# A user that may do only some things: the rights that the manual lists are enough for all that rlock does, and without
# one of them it is named. Each right with each verb is tried by acl.bats.

load ../lib/usual
load ../lib/rights
load ../lib/passwords

# all_of_kind VERB LOCK_VERB WAIT_VERB: what can be done with a lock of that kind.
all_of_kind() {
	local verb=$1 lock=$2 waiter=$3
	run -0 rlock "$verb" -n nightly nightly2 -- ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
	run -0 rlock "$verb" -t 3s nightly -- sleep 1.4
	assert_output ''
	run -0 rlock "$verb" --db 3 'nightly {x' -- rlock "$verb" --db 3 'nightly {x' -- true
	run -0 rlock "$verb" --at-least 50ms nightly -- true
	# A reader does not wait for what another one is to keep.
	wait_until 5 no_keys
	run -0 rlock "$lock" --owner x --lease 20s nightly
	run -0 rlock renew --owner x --lease 20s nightly
	run -75 rlock "$waiter" -w 1s nightly -- true
	assert_output --partial 'held by'
	in_background rlock "$waiter" -w 20s nightly -- true
	wait_until 5 eval '! no_subscribers'
	run -0 rlock unlock --force nightly
	assert_output --regexp 'lock broken: it was held by .*x:0(:write)?\)?, which may still run$'
	ended_with 0
	wait_until 5 no_keys
}

@test "the rights that the manual lists are enough for everything, and for no other name" {
	least_rights
	export RLOCK_URL=$CI_URL
	all_of_kind run lock lock
	all_of_kind fair fair fair
	all_of_kind rlock rlock wlock
	all_of_kind wlock wlock rlock
	run -0 rlock run --fence nightly -- printenv RLOCK_TOKEN
	assert_equal "$(redis acl log)" ''
	# Of several names the one is reported whose key the user has no right to, and of several servers one that denies it.
	run rlock run -n -u "$CI_URL" -u "$CI_URL/1" nightlyB other nightlyC -- touch ran
	assert_refused 77 'rlock: other: redis://'
	assert_output --partial ': denied by the server: '
}

@test "without two of the rights that undo an acquisition it is refused, and nothing is left" {
	local missing verb
	# Where a script is not known it has to be sent. What is added to the queue of a fair lock to try that is removed by LREM.
	while read -r missing; do
		redis acl deluser ci >/dev/null
		least_rights
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
