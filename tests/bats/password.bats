#!/usr/bin/env bats
# Passwords: where they come from, which of several is used, and which files are good for one. One that the server
# denies is the matter of password_denied.bats, and that none is seen of password_hidden.bats.

load ../lib/helpers
load ../lib/rights
load ../lib/passwords

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }
setup() { password_setup; }
teardown() { password_teardown; }

# ---- the right one ----

@test "the password in the URL is used" {
	want_password
	run -0 rlock run -u "redis://:$SECRET@$PLACE" a -- true
	assert_output ''
}

@test "the password in a file is used" {
	want_password
	echo "$SECRET" >file
	run -0 rlock run --password-file file a -- true
	assert_output ''
}

@test "of a password file the first line counts, however it ends" {
	want_password
	printf '%s\r\nanother line\n' "$SECRET" >file
	run -0 rlock run --password-file file a -- true
	printf '%s' "$SECRET" >file
	run -0 rlock run --password-file file a -- true
}

@test "a password file that the configuration file names is used" {
	want_password
	echo "$SECRET" >file
	printf '%s\n' "url = redis://$PLACE" "password-file = $PWD/file" >rlock.conf
	run -0 env -u RLOCK_URL rlock run --config rlock.conf a -- true
	assert_output ''
}

# no_password_was_sent: to a server that refuses each, for it has none.
no_password_was_sent() {
	run -0 redis info commandstats
	assert_output --partial cmdstat_
	refute_output --regexp 'cmdstat_auth|cmdstat_hello'
}

@test "the configuration file's password is not sent to a server that -u or RLOCK_URL names" {
	echo "$SECRET" >file
	printf '%s\n' "url = redis://site.invalid" "password-file = $PWD/file" >rlock.conf
	redis config resetstat >/dev/null
	run -0 rlock run --config rlock.conf -u "redis://$PLACE" a -- true
	assert_output ''
	run -0 rlock run --config rlock.conf a -- true
	run -0 rlock lock --config rlock.conf --pid $$ a
	run -0 rlock renew --config rlock.conf --pid $$ a
	run -0 rlock unlock --config rlock.conf --pid $$ a
	no_password_was_sent
}

@test "a password file on the command line is for the configuration file's server, too" {
	want_password
	echo "$SECRET" >file
	echo "url = redis://$PLACE" >rlock.conf
	run -0 env -u RLOCK_URL rlock run --config rlock.conf --password-file file a -- true
	assert_output ''
}

@test "REDISCLI_AUTH is for each server, and a password file on the command line, too" {
	want_password
	echo "$WRONG" >wrong
	echo "$SECRET" >right
	printf '%s\n' "url = redis://site.invalid" "password-file = $PWD/wrong" >rlock.conf
	REDISCLI_AUTH=$SECRET run -0 rlock run --config rlock.conf -u "redis://$PLACE" a -- true
	REDISCLI_AUTH=$SECRET run -0 rlock run --config rlock.conf a -- true
	run -0 rlock run --config rlock.conf --password-file right a -- true
}

@test "the password in REDISCLI_AUTH is used" {
	want_password
	REDISCLI_AUTH=$SECRET run -0 rlock run a -- true
	assert_output ''
}

@test "the password works on a unix socket" {
	want_password
	REDISCLI_AUTH=$SECRET run -0 rlock run -u "unix://$SERVER_SOCKET" a -- true
	assert_output ''
}

@test "a user and a password are used together" {
	make_user
	run -0 rlock run -u "redis://ci:$SECRET@$PLACE" a -- ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
	echo "$SECRET" >file
	run -0 rlock run -u "redis://ci@$PLACE" --password-file file a -- ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
	run -0 env REDISCLI_AUTH="$SECRET" rlock run -u "redis://ci@$PLACE" a -- \
		env -u REDISCLI_AUTH ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
}

@test "a user without a password is that user, and no other" {
	redis acl setuser guest on nopass allkeys allchannels +@all >/dev/null
	run -0 rlock run -u "redis://guest@$PLACE" a -- ask_redis "$PORT" client list
	assert_output --partial 'user=guest'
}

@test "a user whose password was not given is refused, and is not another" {
	make_user
	run -77 env -u REDISCLI_AUTH rlock run -u "redis://ci@$PLACE" a -- touch ran
	[ "${#lines[@]}" -eq 1 ]
	[ ! -e ran ]
}

@test "a password with any characters in it is written by their numbers" {
	redis acl setuser ci on '>p@s:s/w%?#d' allkeys allchannels +@all >/dev/null
	run -0 rlock run -u "redis://ci:p%40s%3As%2Fw%25%3F%23d@$PLACE" a -- true
	printf '%s\n' 'p@s:s/w%?#d' >file
	run -0 rlock run -u "redis://ci@$PLACE" --password-file file a -- true
}

@test "the URL's password goes before the file's, and the file's before the environment's" {
	want_password
	echo "$SECRET" >right
	echo "$WRONG" >wrong
	REDISCLI_AUTH=$WRONG run -0 rlock run --password-file right a -- true
	REDISCLI_AUTH=$SECRET run -77 rlock run --password-file wrong a -- true
	run -0 rlock run --password-file wrong -u "redis://:$SECRET@$PLACE" a -- true
	run -77 rlock run --password-file right -u "redis://:$WRONG@$PLACE" a -- true
}

@test "renewals and the release of a lock have the password too" {
	want_password
	in_background rlock run -t 3s -u "redis://:$SECRET@$PLACE" a -- until_let_go
	wait_until 5 lock_is_there
	# Of a whole lease and more, as long as nothing renews it.
	run -0 redis_with_password -r 330 -i 0.01 exists a
	refute_line 0
	let_go
	wait "$PID"
	assert_equal "$(redis_with_password dbsize)" 0
}

@test "a waiter has the password too" {
	want_password
	in_background rlock run -u "redis://:$SECRET@$PLACE" a -- until_let_go
	wait_until 5 lock_is_there
	run -75 rlock run -u "redis://:$SECRET@$PLACE" -w 2s a -- touch ran
	assert_refused 75 'held by'
}

@test "a lock without a command has the password for its unlock too" {
	want_password
	run -0 rlock lock -u "redis://:$SECRET@$PLACE" --pid $$ a
	assert_equal "$(redis_with_password exists a)" 1
	run -0 rlock unlock -u "redis://:$SECRET@$PLACE" --pid $$ a
	assert_equal "$(redis_with_password exists a)" 0
}

# ---- whose file it is ----

@test "a password file that others can write is refused, and what to type is said" {
	local mode
	want_password
	echo "$SECRET" >'my file'
	for mode in 620 602 660 666; do
		chmod "$mode" 'my file'
		run rlock run --password-file 'my file' a -- touch ran
		assert_refused 78 "password file 'my file': other users can write it, its mode is 0$mode"
		assert_output --regexp "then: chmod 600 'my file'\$"
	done
	chmod 600 'my file'
	run -0 rlock run --password-file 'my file' a -- true
	assert_output ''
}

@test "a password file that every user can read is used, with one warning that says what to type" {
	want_password
	echo "$SECRET" >file
	chmod 644 file
	ln -s file link
	run -0 rlock run --password-file link -u "redis://$PLACE/1" -u "redis://$PLACE/2" a -- true
	assert_output "rlock: password file 'link': any user can read it, its mode is 0644: try: chmod 600 link"
	chmod 640 file
	run -0 rlock run --password-file file a -- true
	assert_output ''
}

@test "a pipe without a writer, or without an end, is waited for as long as a server" {
	mkfifo -m 600 pipe
	run -78 timeout 30 rlock run -n --connect-timeout 300ms --password-file pipe a -- touch ran
	assert_output "rlock: password file 'pipe': a pipe that was not written to its end in time"
	exec {PIPE}<>pipe
	echo "$SECRET" >&"$PIPE"
	run -78 timeout 30 rlock run -n --connect-timeout 300ms --password-file pipe a -- touch ran
	assert_output "rlock: password file 'pipe': a pipe that was not written to its end in time"
	exec {PIPE}<&-
	assert [ ! -e ran ]
}

@test "a pipe may get its writer later" {
	want_password
	mkfifo -m 600 pipe
	in_background rlock run --connect-timeout 30s --password-file pipe a -- touch ran
	wait_until 5 has_open "$PID" pipe
	echo "$SECRET" >pipe
	wait_until 5 file_exists ran
}

# has_open PID FILE
has_open() {
	[[ " $(readlink "/proc/$1/fd/"*) " = *"$PWD/$2"* ]]
}

# shellcheck disable=SC2016
@test "a password can come from a pipe" {
	want_password
	run -0 bash -c 'rlock run --password-file <(echo "$1") a -- true' bash "$SECRET"
	assert_output ''
	run -0 sh -c 'echo "$1" | rlock run --password-file /dev/stdin a -- true' sh "$SECRET"
	assert_output ''
}
