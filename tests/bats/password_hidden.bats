#!/usr/bin/env bats
# A password is not to be seen: on no command line, in no message, in no core and in no environment where the caller had
# not put it.

load ../lib/helpers
load ../lib/rights
load ../lib/passwords
load ../lib/watching

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }
setup() { password_setup; }
teardown() { password_teardown; }

# shows_no_secret PID: in the command line of a process, which is there.
shows_no_secret() {
	run -0 tr '\0' ' ' <"/proc/$1/cmdline"
	assert_output --partial rlock
	refute_output --partial "$SECRET"
}

waits() {
	redis pubsub channels | grep -qxF 'redisson_lock__channel:{a}'
}

@test "a password in a URL does not stay on the command line of rlock or its renewer" {
	need_own_command_line
	want_password
	in_background rlock run -u "redis://:$SECRET@$PLACE" a -- until_let_go
	wait_until 5 lock_is_there
	wait_until 5 has_renewer "$PID"
	shows_no_secret "$(renewer_of "$PID")"
	# The rest of it stays readable.
	shows_no_secret "$PID"
	assert_output --regexp "rlock run -u redis://:\*+@$PLACE a -- until_let_go"
}

@test "a password in a URL does not stay on the command line of a waiter" {
	need_own_command_line
	local url
	make_user
	redis hset a x:1 1 >/dev/null
	for url in "--url=redis://ci:$SECRET@$PLACE" "-vuredis://ci:$SECRET@$PLACE"; do
		in_background rlock run "$url" a -- true
		wait_until 5 waits
		shows_no_secret "$PID"
		kill "$PID"
		wait_until 5 is_gone "$PID"
		wait_until 5 nothing_is_listened_to
	done
}

@test "the renewer of a lock without a command shows no password, and its hold file has none" {
	need_own_command_line
	local renewer
	want_password
	rlock lock --pid $$ -u "redis://:$SECRET@$PLACE" a
	renewer=$(sed -n 's/^state \([0-9]*\) .*/\1/p' "$RLOCK_RUNTIME_DIR"/hold-*)
	name_of "$renewer"
	assert_equal "$NAME_OF_PROCESS" rlock-renewer
	shows_no_secret "$renewer"
	run ! grep -F "$SECRET" "$RLOCK_RUNTIME_DIR"/hold-*
	run -0 rlock unlock --pid $$ -u "redis://:$SECRET@$PLACE" a
}

# Of wrong lines: unit/test_usage.c and unit/test_config.c.
@test "no message has a password in it" {
	local url
	want_password
	run rlock run -v -u "redis://:$SECRET@$PLACE" a -- true
	assert_output --partial "redis://$PLACE"
	refute_output --partial "$SECRET"
	for url in "redis://:$SECRET@127.0.0.1:1" "rediss://ci:$SECRET@$PLACE"; do
		RLOCK_URL=$url run rlock run -v a -- true
		assert_failure
		refute_output ''
		refute_output --partial "$SECRET"
	done
	printf 'url = unix://%s redis://:%s@%s\n' "$PWD/none" "$SECRET" "$PLACE" >rlock.conf
	run -69 env -u RLOCK_URL rlock check --config rlock.conf
	assert_output --regexp "unix://$PWD/none redis://:\*+@$PLACE, from "
	refute_output --partial "$SECRET"
}

@test "the command finds no password in its environment that the caller had not put there" {
	want_password
	echo "$SECRET" >file
	printf 'url = redis://:%s@%s\n' "$SECRET" "$PLACE" >rlock.conf
	run -0 rlock run -u "redis://:$SECRET@$PLACE" a -- env
	assert_output --partial RLOCK_HELD=
	refute_output --partial "$SECRET"
	run -0 rlock run --password-file file a -- env
	refute_output --partial "$SECRET"
	run -0 env -u RLOCK_URL rlock run --config rlock.conf a -- env
	refute_output --partial "$SECRET"
}

@test "what the caller gave the command is not touched, even if it looks like a password" {
	want_password
	run -0 env RLOCK_URL="redis://:$SECRET@$PLACE" REDISCLI_AUTH="$SECRET" rlock run a -- printenv RLOCK_URL RLOCK_HELD REDISCLI_AUTH
	assert_line --index 0 "redis://:$SECRET@$PLACE"
	refute_line --index 1 --partial "$SECRET"
	assert_line --index 2 "$SECRET"
	run -0 rlock run -u "redis://:$SECRET@$PLACE" a -- echo "redis://:$SECRET@$PLACE"
	assert_output "redis://:$SECRET@$PLACE"
}

@test "the password does not end up on the server or in its list of clients" {
	make_user
	# shellcheck disable=SC2016
	run -0 rlock run -u "redis://ci:$SECRET@$PLACE" a -- sh -c '
		ask_redis "$PORT" client list; redis-cli -p "$PORT" hgetall rlock_holds:{a}'
	refute_output --partial "$SECRET"
}

# The kernel gives the files of a process without core dumps to root, whatever user runs it.
@test "neither rlock nor its renewer can dump core while it knows a password, and the command can" {
	local -a as=()
	make_user
	if [ "$(id -u)" = 0 ]; then
		as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
		unset XDG_CONFIG_HOME HOME
		"${as[@]}" "$(command -v rlock)" --version || skip "another user cannot run rlock here"
	fi
	in_background "${as[@]}" "$(command -v rlock)" run -u "redis://$PLACE" plain -- sleep 60
	wait_until 5 is_above "$PID" sleep
	wait_until 5 has_renewer "$PID"
	refute [ "$(stat -c %u "/proc/$PID/auxv")" = 0 ]
	in_background "${as[@]}" "$(command -v rlock)" run -u "redis://ci:$SECRET@$PLACE" secret -- sleep 60
	wait_until 5 is_above "$PID" sleep
	wait_until 5 has_renewer "$PID"
	assert_equal "$(stat -c %u "/proc/$PID/auxv")" 0
	assert_equal "$(stat -c %u "/proc/$(renewer_of "$PID")/auxv")" 0
	refute [ "$(stat -c %u "/proc/$(command_of "$PID")/auxv")" = 0 ]
	pkill -P "$(renewer_of "${BACKGROUND[0]}")" -x sleep
	pkill -P "$(renewer_of "${BACKGROUND[1]}")" -x sleep
	wait "${BACKGROUND[@]}" || :
}
