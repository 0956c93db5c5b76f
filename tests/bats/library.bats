#!/usr/bin/env bats
# bats file_tags=computes
# librlock as another program uses it: what librlock(3) says of leases, of events, of processes that take over, and of fork. How it is
# installed is tested by tests/release/library.bats.

load ../lib/usual
load ../lib/proxying

setup_file() { start_server_at_port; }

teardown() { common_teardown; }

# compile NAME: that program of tests/library.
compile() {
	local build=${RLOCK_BIN%/*}
	# What is watched stands one directory below.
	[ -z "${TESTS_UNDER-}" ] || build=${build%/*}
	# shellcheck disable=SC2046
	"${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -D_GNU_SOURCE -I "$TOP/lib" -o "$1" "$TOP/tests/library/$1.c" \
		"$build/librlock.a" $("${PKG_CONFIG:-pkg-config}" --libs hiredis) -ldl
}

@test "a lease is counted from before the request was sent, when it is acquired and when it is renewed" {
	compile lock
	start_proxy
	proxy delay 400
	run -0 ./lock "$RLOCK_URL" name
	assert_equal "${#lines[@]}" 2
	assert [ "${lines[0]}" -ge 400 ]
	assert [ "${lines[1]}" -ge 400 ]
	no_keys
}

@test "a holder finds a request to stop with its next renewal, and no hold that came later is asked" {
	local owner=7a0f3c1e-5f0c-4d6e-9a55-0d7f6c1b2a34:9
	compile stop
	run -0 ./stop "$RLOCK_URL" name
	# Holds of one lock come in no order.
	assert_equal "$(sort <<<"$output")" "$(sort <<<"free: not_held, 0
renewed: none 99
another: not_held, 0
asked: ok, 2
$owner hears: asked
$owner is deaf: cannot be asked
renewed: me@here 0
renewed: none 99
again: ok, 1
$owner hears: asked
renewed: me@here 0
renewed: none 99
released: not_held, 0")"
	no_keys
}

@test "a timer that goes off all the time during a renewal or a release costs neither the request nor the connection" {
	compile events
	start_proxy
	run -0 ./events "$RLOCK_URL" hold \
		"faultproxy -c unix:$BATS_TEST_TMPDIR/control delay 300 && faultproxy -c unix:$BATS_TEST_TMPDIR/control refuse on"
	assert_output $'acquire: ok\nok\nok\nrenew: ok\nrenew: ok\nrenew: ok\nfind: ok\nrelease: ok'
	run -0 proxy count
	assert_output --regexp '^connections=1 '
	no_keys
}

@test "a renewal without a reply ends at its deadline, though a timer goes off all the time" {
	compile events
	start_proxy
	run -0 ./events "$RLOCK_URL" late "faultproxy -c unix:$BATS_TEST_TMPDIR/control blackhole on"
	assert_output $'ok\nrenew: enet\nsoon'
	redis flushall
}

@test "an event ends a wait, which leaves the queue, and others do not" {
	compile events
	hold_in_background a
	run -0 ./events "$RLOCK_URL" wait 'ask_redis "$SERVER_SOCKET" exists "rlock_queue:{a}"'
	assert_output $'acquire: cancelled\nenough events\n0'
	let_go
	wait_until 5 no_keys
}

@test "a wait that goes on in another process, after the first was killed, has its position in the queue" {
	local kind
	compile take_over
	# By then a script has removed the dead waiter: from the wake queue since it does not listen.
	local forget='ask_redis "$SERVER_SOCKET" lpop redisson_lock_queue:{a} && ask_redis "$SERVER_SOCKET" hdel rlock_waiters:{a} A:1'
	for kind in plain write sem; do
		run -0 ./take_over "$RLOCK_URL" order "$kind" true a b
		assert_output ABC
		run -0 ./take_over "$RLOCK_URL" order "$kind" true a
		assert_output ABC
		# A semaphore keeps its total.
		[ "$kind" = sem ] || no_keys
		redis flushall
	done
	run -0 ./take_over "$RLOCK_URL" order fair true a b
	assert_output ABC
	run -0 ./take_over "$RLOCK_URL" order fair "($forget) >/dev/null" a
	assert_output ABC
}

@test "a request whose reply was never read is granted to the same owner and hold id once, in another process" {
	local kind
	compile take_over
	for kind in plain fair; do
		run -0 ./take_over "$RLOCK_URL" granted "$kind" a b
		assert_output $'1 1\n1 1'
		redis del 'redisson_lock_token:{a}' 'redisson_lock_token:{b}'
		no_keys
	done
	for kind in read write sem; do
		run -0 ./take_over "$RLOCK_URL" granted "$kind" a b
		assert_output $'1 0\n1 0'
		[ "$kind" = sem ] || no_keys
		redis flushall
	done
}

@test "a process leaves the queue, and releases what was granted, in the place of one that was killed" {
	local kind
	compile take_over
	for kind in plain fair read write; do
		run -0 ./take_over "$RLOCK_URL" leave "$kind" a b
		assert_output not_held
		no_keys
	done
	run -0 ./take_over "$RLOCK_URL" leave sem a
	assert_output not_held
	run -0 redis exists "rlock_queue:{a}" "rlock_holds:{a}"
	assert_output 0
	redis flushall
}

@test "a wait that goes on in another process leaves the queue when it is cancelled before it has sent anything" {
	local kind
	compile take_over
	for kind in plain fair write; do
		run -0 ./take_over "redis://127.0.0.1:$PORT" cancel "$kind" a b
		assert_output cancelled
		no_keys
	done
}

@test "a new owner that the caller gives re-enters what it has inherited" {
	compile take_over
	run -0 ./take_over "$RLOCK_URL" owner plain a
	assert_output 'A:1 2'
	run -0 ./take_over "$RLOCK_URL" owner read a
	assert_output 'A:1 2'
	no_keys
}

@test "a child that calls rlock_conn_after_fork_child uses its connection beside its parent, and both renew the hold" {
	compile fork
	run -0 ./fork "$RLOCK_URL"
	# The child opens a connection of its own, once; the parent goes on with the one that it had.
	assert_equal "$(grep -c '^child: connected' <<<"$output")" 1
	refute_line --regexp '^parent: connect'
	no_keys
}
