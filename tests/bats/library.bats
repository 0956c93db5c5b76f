#!/usr/bin/env bats
# bats file_tags=computes
# librlock as other programs use it: what librlock(3) says about leases, events and fork. tests/release/library.bats tests its
# installation.

load ../lib/usual
load ../lib/proxying

setup_file() { start_server_at_port; }

teardown() { common_teardown; }

# compile NAME: compiles and links tests/library/NAME.c.
compile() {
	local build=${RLOCK_BIN%/*}
	# Under valgrind or a sanitizer RLOCK_BIN is one directory further down.
	[ -z "${TESTS_UNDER-}" ] || build=${build%/*}
	# shellcheck disable=SC2046
	"${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -D_GNU_SOURCE -I "$TOP/lib" -o "$1" "$TOP/tests/library/$1.c" \
		"$build/librlock.a" $("${PKG_CONFIG:-pkg-config}" --libs hiredis) -ldl
}

@test "a lease is counted from before the acquire or the renewal was sent" {
	compile lock
	start_proxy
	proxy delay 400
	run -0 ./lock "$RLOCK_URL" name
	assert_equal "${#lines[@]}" 2
	assert [ "${lines[0]}" -ge 400 ]
	assert [ "${lines[1]}" -ge 400 ]
	no_keys
}

@test "a probe finds whether a lock is busy, and by which owner, and acquires nothing" {
	compile probe
	run -0 ./probe "$RLOCK_URL" name
	assert_equal "${#lines[@]}" 3
	assert_equal "${lines[0]}" 'ok '
	assert_regex "${lines[1]}" '^busy held by [0-9a-f-]+:[0-9]+$'
	assert_equal "${lines[2]}" 'ok '
	no_keys
}

# in_real_time COMMAND...: executes COMMAND with a real-time priority, if that is allowed. Without it a busy machine may give COMMAND no
# processor between a request and its reply, so that COMMAND waits for nothing.
in_real_time() {
	run_in_real_time "$BASHPID"
	exec "$@"
}

@test "a timer that fires all the time makes a renewal or a release lose neither its request, its connection nor its deadline" {
	compile events
	start_realtime_proxy
	# Far below the second that the first attempt of a request has, and long enough for many events: a busy machine may delay both.
	run -0 in_real_time ./events "$RLOCK_URL" hold \
		"ask_redis $BATS_TEST_TMPDIR/control delay 300 && ask_redis $BATS_TEST_TMPDIR/control refuse on"
	assert_output $'acquire: ok\nok\nok\nrenew: ok\nrenew: ok\nfind: ok\nrelease: ok'
	run -0 proxy count
	assert_output --regexp '^connections=1 '
	no_keys
	proxy delay 0
	proxy refuse off
	run -0 in_real_time ./events "$RLOCK_URL" late "ask_redis $BATS_TEST_TMPDIR/control blackhole on"
	assert_output $'acquire: ok\nok\nrenew: enet'
}

@test "after rlock_conn_close_streams the child has a connection of its own, and child and parent both renew the hold" {
	compile fork
	run -0 ./fork "$RLOCK_URL"
	# The child must open one new connection, and the parent must keep its own.
	assert_equal "$(grep -c '^child: connected' <<<"$output")" 1
	refute_line --regexp '^parent: connect'
	no_keys
}
