#!/usr/bin/env bats
# When a lock ends of which its owner has several holds, once one of them was released: with the longest of the others,
# to the moment.

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

VERBS='lock fair rlock wlock'
# By what a busy server may be late within a script.
SLACK_MS=1000

# end_of KEY: in ms since 1970.
end_of() {
	redis eval 'local now = redis.call("TIME")
		return string.format("%.0f", now[1] * 1000 + now[2] / 1000 + redis.call("PTTL", KEYS[1]))' 1 "$1"
}

# ends_at KEY MS
ends_at() {
	local off=$(($(end_of "$1") - $2))
	((off >= -SLACK_MS && off <= SLACK_MS)) || {
		echo "$1 ends $off ms later than it should" >&2
		return 1
	}
}

@test "a lock ends with the outer hold, as that was renewed last, once the inner one was released, of every kind" {
	local verb
	declare -A ends=()
	for verb in $VERBS; do
		run -0 rlock "$verb" --owner job --lease 10s "$verb"
		run -0 rlock renew --owner job --lease 1m "$verb"
		ends[$verb]=$(end_of "$verb")
		run -0 rlock "$verb" --owner job --lease 2m "$verb"
		run -0 rlock unlock --owner job "$verb"
		ends_at "$verb" "${ends[$verb]}"
		ends_at "rlock_holds:{$verb}" "${ends[$verb]}"
	done
}

# is_listened_to CHANNEL
is_listened_to() {
	[ "$(redis pubsub numsub "$1" | tail -n 1)" = 1 ]
}

@test "a waiter learns of the earlier end when a hold that lasts longer is released" {
	local verb pids=()
	for verb in lock wlock; do
		run -0 rlock "$verb" --owner job --lease 8s "$verb"
		run -0 rlock "$verb" --owner job --lease 5m "$verb"
	done
	in_background rlock run lock -- true
	pids+=("$PID")
	in_background rlock rlock wlock -- true
	pids+=("$PID")
	wait_until 5 is_listened_to 'redisson_lock__channel:{lock}'
	wait_until 5 is_listened_to 'redisson_rwlock:{wlock}'
	# They look once more when they listen.
	wait_until 5 ttl_is_below lock $(($(redis pttl lock) - 1000))
	for verb in lock wlock; do
		run -0 rlock unlock --owner job "$verb"
	done
	# A waiter that is not notified looks by itself, but not so soon.
	wait_until 20 is_gone "${pids[0]}"
	wait_until 20 is_gone "${pids[1]}"
	ended_with 0 "${pids[0]}"
	ended_with 0 "${pids[1]}"
}
