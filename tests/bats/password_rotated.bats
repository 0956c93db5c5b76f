#!/usr/bin/env bats
# Passwords that change while a lock is held or waited for, as tokens do that expire: each connect has the one of its time, by
# --password-command and by --password-file, and a service that is away is waited for, as long as there is time.

load ../lib/usual
load ../lib/password_commands

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }

setup() {
	umask 077
	password_command_setup
	# Each try counts, and none succeeds while the file "away" is there.
	MAYBE="echo try >>'$PWD/tries'; test ! -e '$PWD/away' && $COMMAND"
}

teardown() { password_command_teardown; }

# is_renewed_by_another LEASE_MS: the connections are gone, and their passwords, too: what renews the lock is another one.
is_renewed_by_another() {
	close_connections
	redis pexpire a $(($1 * 3 / 4)) >/dev/null
	wait_until 10 ttl_is_above a $(($1 * 3 / 4))
}

# is_away: the connections are gone, and the token service is away when a new one is tried.
is_away() {
	: >away
	: >tries
	close_connections
	wait_until 10 file_has tries try
}

release_to_waiters() {
	redis del a >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
}

@test "renewals and the release have the password that the file has then, by a relative name, too" {
	in_background rlock run -t 3s --password-file token-now a -- until_let_go
	wait_until 5 has_connections 1
	rotate second-t0ken
	is_renewed_by_another 3000
	rotate third-t0ken
	close_connections
	let_go
	ended_with 0
	no_keys
}

@test "a lock without a command has the password of its time" {
	run -0 rlock lock -t 3s --password-file token-now --pid $$ a
	wait_until 5 has_connections 1
	rotate second-t0ken
	is_renewed_by_another 3000
	run -0 rlock unlock --password-file token-now --pid $$ a
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
	release_to_waiters
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
	is_renewed_by_another 9000
	let_go
	ended_with 0
}

@test "a token service that is away for a while does not lose a lock" {
	in_background rlock run -t 6s --password-command "$MAYBE" a -- until_let_go
	wait_until 5 has_connections 1
	is_away
	rm away
	is_renewed_by_another 6000
	let_go
	ended_with 0
	no_keys
}

@test "a token service that is away for a whole lease loses the lock, and says so" {
	in_background sh -c 'exec rlock run -t 2s --password-command "$1" a -- sleep 60 2>said' sh "$MAYBE"
	wait_until 5 has_connections 1
	is_away
	ended_with 76
	run -0 cat said
	assert_output --partial 'password command ended with status 1'
}

@test "a file that is gone, is empty while it is written, or is no file that rlock trusts, leaves the last password" {
	in_background rlock run -t 3s --password-file token-now a -- until_let_go
	wait_until 5 has_connections 1
	rm token-now
	is_renewed_by_another 3000
	: >token-now
	is_renewed_by_another 3000
	echo wr0ng-t0ken >token-now
	chmod 622 token-now
	is_renewed_by_another 3000
	rm token-now
	mkfifo token-now
	is_renewed_by_another 3000
	# No process that has read it is left.
	wait_until 5 has_one_child "$(renewer_of "$PID")"
	let_go
	ended_with 0
	no_keys
}

# The command.
has_one_child() {
	[ "$(pgrep -cP "$1")" = 1 ]
}

@test "a pipe is read once, and its password is for every connection" {
	in_background bash -c 'exec rlock run -t 3s --password-file <(cat token-now) a -- until_let_go'
	wait_until 5 has_connections 1
	rm token-now
	is_renewed_by_another 3000
	let_go
	ended_with 0
}
