#!/usr/bin/env bats
# Passwords: where they come from, which of several is used, and which files are good for one; one that the server denies locks,
# releases and renews nothing as another user, nor in another database; and none is to be seen: on no command line, in no message,
# core or environment where the caller had not put it.

load ../lib/usual
load ../lib/rights
load ../lib/passwords

setup_file() { start_server_at_port; }
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

@test "a pipe without a writer is waited for as long as a server" {
	mkfifo -m 600 pipe
	run -78 timeout 30 rlock run -n --connect-timeout 300ms --password-file pipe a -- touch ran
	assert_output "rlock: password file 'pipe': a pipe that was not written to its end in time"
	assert [ ! -e ran ]
}

@test "a password can come from a pipe" {
	want_password
	run -0 bash -c 'rlock run --password-file <(echo "$1") a -- true' bash "$SECRET"
	assert_output ''
	run -0 sh -c 'echo "$1" | rlock run --password-file /dev/stdin a -- true' sh "$SECRET"
	assert_output ''
}

# ---- a wrong one, or none ----

@test "a wrong password, or one for a server that has none, is refused in one line, at once also with a wait time" {
	run rlock run -u "redis://:$SECRET@$PLACE" a -- touch ran
	assert_refused 77 password
	want_password
	# Without an end to the wait, but for that of timeout.
	REDISCLI_AUTH=$WRONG run timeout 30 rlock run -w 1h a -- touch ran
	assert_refused 77 password
	assert_equal "$(redis_with_password dbsize)" 0
}

@test "a missing password is refused in one line, and what to do is said" {
	local verb
	want_password
	run rlock run a -- touch ran
	assert_refused 77 ''
	assert_output 'rlock: a: server requires a password: give one in the URL, by --password-file, --password-command or REDISCLI_AUTH'
	for verb in unlock renew; do
		run rlock "$verb" --owner x a
		assert_refused 77 password
	done
}

@test "with a refused password it is said where that came from" {
	want_password
	echo "$WRONG" >'wrong file'
	run rlock run -u "redis://:$WRONG@$PLACE" a -- touch ran
	assert_refused 77 ': the password is in the URL from --url'
	RLOCK_URL=redis://:$WRONG@$PLACE run rlock run a -- touch ran
	assert_refused 77 ': the password is in the URL from RLOCK_URL'
	run rlock run --password-command "echo $WRONG" a -- touch ran
	assert_refused 77 ': the password is from --password-command'
	run rlock run --password-file 'wrong file' a -- touch ran
	assert_refused 77 ': the password is from --password-file wrong file'
	REDISCLI_AUTH=$WRONG run rlock unlock --owner x a
	# The server's words stand behind it.
	assert_refused 77 ': the password is from REDISCLI_AUTH: WRONGPASS '
	printf '%s\n' "url = redis://$PLACE" 'password-file = wrong file' >rlock.conf
	run env -u RLOCK_URL rlock run --config rlock.conf a -- touch ran
	assert_refused 77 ': the password is from wrong file, the password-file in rlock.conf'
	echo "url = redis://:$WRONG@$PLACE" >rlock.conf
	run env -u RLOCK_URL rlock run --config rlock.conf a -- touch ran
	assert_refused 77 ': the password is in the URL from rlock.conf'
	run rlock run a -- touch ran
	assert_refused 77 --password-file
	refute_output --partial 'the password is'
	printf '%s\n' "url = redis://$PLACE" 'password-file = wrong file' >rlock.conf
	run rlock run --config rlock.conf a -- touch ran
	assert_refused 77 ': the password-file in rlock.conf is for the url there, not for the one from RLOCK_URL'
}

# Every client is let in without a password here, so that what was sent after a denied login is done.
@test "a refused login locks nothing as the user that one is without it" {
	local option
	make_user
	for option in -n '-w 2s --db 3' '--at-least 20s'; do
		# The second time the server knows the script already.
		for _ in 1 2; do
			# shellcheck disable=SC2086
			run rlock run $option -u "redis://ci:$WRONG@$PLACE" a b -- touch ran
			assert_refused 77 password
			nothing_is_locked
			rlock run warm -- true
		done
	done
	run rlock lock --pid $$ -u "redis://ci:$WRONG@$PLACE" a
	assert_refused 77 password
	nothing_is_locked
}

# without_harm STATUS TEXT OPTION...: with these options no verb does anything to the lock of another user or database.
without_harm() {
	local words
	rlock lock --owner x --lease 20s a
	# The server knows the scripts.
	rlock renew --owner x --lease 20s a
	rlock unlock --owner x warm || :
	rlock unlock --force warm || :
	for words in 'unlock --owner x' 'unlock --force' 'renew --owner x --lease 90s'; do
		# shellcheck disable=SC2086
		run rlock $words "${@:3}" a
		assert_refused "$1" "$2"
	done
	is_held a
	assert [ "$(redis pttl a)" -le 20000 ]
}

@test "a denied login releases, breaks and renews no lock" {
	make_user
	without_harm 77 password -u "redis://ci:$WRONG@$PLACE"
}

# ---- databases ----

@test "a lock is in the database of the URL, or of --db, and excludes none in another one" {
	local where='redis-cli -p "$PORT" info keyspace | grep -o "^db[0-9]*"'
	run -0 rlock run -u "redis://$PLACE/3" a -- sh -c "$where"
	assert_output db3
	run -0 rlock run -u "unix://$SERVER_SOCKET" --db 4 a -- sh -c "$where"
	assert_output db4
	rlock lock --db 2 --owner x --lease 20s a
	run -0 rlock run -n a -- true
}

@test "a database that the server has not got is refused, and nothing is locked in another one" {
	run rlock run --db 99 a -- touch ran
	assert_refused 78 'no such database'
	nothing_is_locked
	rlock run warm -- true
	run rlock run -n -u "redis://$PLACE/99" a b -- touch ran
	assert_refused 78 'no such database'
	nothing_is_locked
}

@test "a database that the server has not got is not unlocked or renewed in another one" {
	without_harm 78 'no such database' --db 99
}

# ---- that none is seen ----

# shows_no_secret PID: in the command line of a process, which is there.
shows_no_secret() {
	run -0 tr '\0' ' ' <"/proc/$1/cmdline"
	assert_output --partial rlock
	refute_output --partial "$SECRET"
}

@test "what may be a password is hidden in a URL that is refused, with whatever between two URLs" {
	local between
	for between in ' ' $'\n' $'\t' $'\r\n'; do
		run -64 rlock run -u "redis://a$between$SECRET@host" a -- true
		refute_output --partial "$SECRET"
		RLOCK_URL="redis://a$between$SECRET@host" run -64 rlock rnu a -- true
		refute_output --partial "$SECRET"
	done
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
		RLOCK_URL=$url run rlock run -v --connect-timeout 500ms a -- true
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
