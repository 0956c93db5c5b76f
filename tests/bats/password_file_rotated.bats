#!/usr/bin/env bats
# bats file_tags=long
# --password-file where the password is changed while a lock is held: each connect has what the file says then.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/password_commands

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() {
	umask 077
	password_command_setup
	FILE=$PWD/token-now
}

teardown() { password_command_teardown; }

# The user ci has logged in again since CONNECTED was set to what the server has counted.
has_connected_again() {
	ask_server info commandstats && [ "$(connects)" -gt "$CONNECTED" ]
}

connects() {
	sed -n 's/^cmdstat_auth:calls=\([0-9]*\),.*/\1/p' <<<"$ANSWER"
}

# The connections are gone, and their passwords too: what connects next is another connection.
lose_connections() {
	ask_server info commandstats
	CONNECTED=$(connects)
	close_connections
}

# holds_for_a_lease: a new connection was opened, and the lock is held for longer than its lease of 3 s without it.
holds_for_a_lease() {
	wait_until 5 has_connected_again
	stays 3.5 is_held a
}

@test "renewals and the release have the password that the file has then" {
	in_background rlock run -t 3s --password-file "$FILE" a -- until_let_go
	wait_until 5 has_connections 1
	rotate second-t0ken
	lose_connections
	holds_for_a_lease
	rotate third-t0ken
	close_connections
	let_go
	ended_with 0
	no_keys
}

@test "the file may be named from the directory in which rlock was started" {
	in_background rlock run -t 3s --password-file token-now a -- until_let_go
	wait_until 5 has_connections 1
	rotate second-t0ken
	lose_connections
	holds_for_a_lease
	let_go
	ended_with 0
}

@test "a lock without a command has the password that the file has then" {
	run -0 rlock lock -t 3s --password-file "$FILE" --pid $$ a
	wait_until 5 has_connections 1
	rotate second-t0ken
	lose_connections
	holds_for_a_lease
	run -0 rlock unlock --password-file "$FILE" a
	is_free a
}

@test "a waiter has the password that the file has then" {
	held_by_stranger a
	in_background rlock run --password-file "$FILE" a -- touch ran
	wait_until 5 has_waiters a
	rotate second-t0ken
	lose_connections
	wait_until 5 has_connected_again
	wait_until 5 has_waiters a
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	ended_with 0
	assert file_exists ran
}

@test "a file that is changed after the server's password is read again" {
	in_background rlock run -t 9s --password-file "$FILE" a -- until_let_go
	wait_until 5 has_connections 1
	redis acl setuser ci resetpass '>second-t0ken' >/dev/null
	lose_connections
	wait_until 9 has_connected_again
	echo second-t0ken >"$FILE"
	stays 9.5 is_held a
	let_go
	ended_with 0
}

# keeps_its_password: with what stands in the place of the file now, the last password is used again.
keeps_its_password() {
	lose_connections
	holds_for_a_lease
	let_go
	ended_with 0
	no_keys
}

@test "a file that is removed, or is empty while it is written, leaves the last password" {
	in_background rlock run -t 3s --password-file "$FILE" a -- until_let_go
	wait_until 5 has_connections 1
	rm "$FILE"
	lose_connections
	holds_for_a_lease
	: >"$FILE"
	keeps_its_password
}

@test "what other users can write, or no file, leaves the last password, and delays nothing" {
	in_background rlock run -t 3s --password-file "$FILE" a -- until_let_go
	wait_until 5 has_connections 1
	echo wr0ng-t0ken >"$FILE"
	chmod 622 "$FILE"
	lose_connections
	holds_for_a_lease
	rm "$FILE"
	mkfifo "$FILE"
	keeps_its_password
}

@test "a pipe is read once, and its password is for every connection" {
	in_background bash -c 'exec rlock run -t 3s --password-file <(cat "$1") a -- until_let_go' bash "$FILE"
	wait_until 5 has_connections 1
	rm "$FILE"
	keeps_its_password
}

@test "no process that has read the file is left" {
	in_background rlock run -t 3s --password-file "$FILE" a -- until_let_go
	wait_until 5 has_connections 1
	lose_connections
	wait_until 5 has_connected_again
	wait_until 5 has_one_child "$(renewer_of "$PID")"
	let_go
	ended_with 0
}

# The command.
has_one_child() {
	[ "$(pgrep -cP "$1")" = 1 ]
}
