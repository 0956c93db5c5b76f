#!/usr/bin/env bats
# bats file_tags=long
# --password-command where passwords are tokens that expire: each connect has the one of its time, and a service that is
# away is waited for, as long as there is time.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/password_commands

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }
setup() { password_command_setup; }
teardown() { password_command_teardown; }

@test "renewals and the release have the password of their time" {
	in_background rlock run -t 3s --password-command "$COMMAND" a -- until_let_go
	wait_until 5 is_held a
	wait_until 5 has_connections 1
	rotate second-t0ken
	close_connections
	wait_until 5 has_calls 2
	# Of a whole lease and more.
	stays 3.5 is_held a
	rotate third-t0ken
	close_connections
	let_go
	ended_with 0
	no_keys
}

@test "a lock without a command has the password of its time" {
	run -0 rlock lock -t 3s --password-command "$COMMAND" --pid $$ a
	wait_until 5 has_connections 1
	rotate second-t0ken
	close_connections
	stays 3.5 is_held a
	run -0 rlock unlock --password-command "$COMMAND" --pid $$ a
	is_free a
}

@test "a waiter has the password of its time, for both of its connections" {
	held_by_stranger a
	in_background rlock run --password-command "$COMMAND" a -- touch ran
	wait_until 5 has_waiters a
	assert_equal "$(calls)" 2
	rotate second-t0ken
	close_connections
	wait_until 5 has_calls 4
	wait_until 5 has_waiters a
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	ended_with 0
	assert file_exists ran
}

@test "a password that is denied when a connection is renewed is fetched anew" {
	in_background rlock run -t 9s --password-command "$COMMAND" a -- until_let_go
	wait_until 5 has_connections 1
	echo expired >token-now
	close_connections
	wait_until 10 has_calls 3
	rotate second-t0ken
	stays 9.5 is_held a
	let_go
	ended_with 0
}

@test "a token service that is away for a while does not lose a lock" {
	in_background rlock run -t 5s --password-command "test ! -e '$PWD/away' && $COMMAND" a -- until_let_go
	wait_until 5 has_connections 1
	: >away
	close_connections
	let_pass 1
	rm away
	stays 5.5 is_held a
	let_go
	ended_with 0
	no_keys
}

@test "a token service that is away for a whole lease loses the lock, and says so" {
	in_background sh -c 'exec rlock run -t 3s --password-command "$1" a -- sleep 60 2>said' sh \
		"test ! -e '$PWD/away' && $COMMAND"
	wait_until 5 has_connections 1
	: >away
	close_connections
	ended_with 76
	run -0 cat said
	assert_output --partial 'password command ended with status 1'
}

@test "a waiter waits for a token service that is away" {
	held_by_stranger a
	in_background rlock run --password-command "test ! -e '$PWD/away' && $COMMAND" a -- touch ran
	wait_until 5 has_waiters a
	: >away
	close_connections
	let_pass 1
	is_running "$PID"
	rm away
	wait_until 10 has_waiters a
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	ended_with 0
	assert file_exists ran
}

@test "a command may take longer than a try to renew, since the next try goes on with it" {
	# The first try has a ninth of the lease.
	write_script slow 'echo call >>"$HERE/calls"' 'timeout 1.5 tail -f /dev/null' 'cat "$HERE/token-now"'
	in_background rlock run -t 9s --password-command "$COMMAND" a -- until_let_go
	wait_until 10 is_held a
	close_connections
	wait_until 12 has_calls 2
	stays 10 is_held a
	assert_equal "$(calls)" 2
	let_go
	ended_with 0
}
