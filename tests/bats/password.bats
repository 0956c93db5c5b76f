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

# ---- where it is from ----

@test "the password is that of the URL, of a file, of the configuration file's, or of REDISCLI_AUTH" {
	want_password
	echo "$SECRET" >file
	printf '%s\n' "url = redis://$PLACE" "password-file = $PWD/file" >rlock.conf
	run -0 rlock run -u "redis://:$SECRET@$PLACE" a -- true
	assert_output ''
	run -0 rlock run --password-file file a -- true
	run -0 env -u RLOCK_URL rlock run --config rlock.conf a -- true
	assert_output ''
	REDISCLI_AUTH=$SECRET run -0 rlock run -u "unix://$SERVER_SOCKET" a -- true
	assert_output ''
}

@test "of a password file the first line counts, however it ends, and in a URL any character is written by its number" {
	redis acl setuser ci on '>p@s:s/w%?#d' allkeys allchannels +@all >/dev/null
	run -0 rlock run -u "redis://ci:p%40s%3As%2Fw%25%3F%23d@$PLACE" a -- true
	printf '%s\r\nanother line\n' 'p@s:s/w%?#d' >file
	run -0 rlock run -u "redis://ci@$PLACE" --password-file file a -- true
	printf '%s' 'p@s:s/w%?#d' >file
	run -0 rlock run -u "redis://ci@$PLACE" --password-file file a -- true
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

@test "REDISCLI_AUTH is for each server, and a password file on the command line, too" {
	want_password
	echo "$WRONG" >wrong
	echo "$SECRET" >right
	printf '%s\n' "url = redis://site.invalid" "password-file = $PWD/wrong" >rlock.conf
	REDISCLI_AUTH=$SECRET run -0 rlock run --config rlock.conf -u "redis://$PLACE" a -- true
	REDISCLI_AUTH=$SECRET run -0 rlock run --config rlock.conf a -- true
	run -0 rlock run --config rlock.conf --password-file right a -- true
}

@test "a user and a password are used together, and a user without one is that user, or refused" {
	local options
	make_user
	redis acl setuser guest on nopass allkeys allchannels +@all >/dev/null
	echo "$SECRET" >file
	for options in "-u redis://ci:$SECRET@$PLACE" "-u redis://ci@$PLACE --password-file file"; do
		# shellcheck disable=SC2086
		run -0 rlock run $options a -- ask_redis "$PORT" client list
		assert_output --partial 'user=ci'
	done
	run -0 rlock run -u "redis://guest@$PLACE" a -- ask_redis "$PORT" client list
	assert_output --partial 'user=guest'
	run rlock run -u "redis://ci@$PLACE" a -- touch ran
	assert_refused 77 ''
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

# ---- which files are good for one ----

@test "a password file that cannot be read, or is empty, is a matter of configuration" {
	run rlock run --password-file no-such-file a -- touch ran
	assert_refused 78 no-such-file
	printf '\n%s\n' "$SECRET" >second
	run rlock run --password-file second a -- touch ran
	assert_refused 78 second
}

@test "a password file that others can write is refused, and what to type is said" {
	local mode
	want_password
	echo "$SECRET" >'my file'
	for mode in 620 602; do
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

@test "a password can come from a pipe, which may get its writer later" {
	want_password
	# shellcheck disable=SC2016
	run -0 bash -c 'rlock run --password-file <(echo "$1") a -- true' bash "$SECRET"
	assert_output ''
	# shellcheck disable=SC2016
	run -0 sh -c 'echo "$1" | rlock run --password-file /dev/stdin a -- true' sh "$SECRET"
	assert_output ''
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
