#!/usr/bin/env bats
# A password that the server denies, one that is missing, and a database that the server does not have: told in one
# line, and nothing is locked, released or renewed as another user or elsewhere.

load ../lib/helpers
load ../lib/rights
load ../lib/passwords

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }
setup() { password_setup; }
teardown() { password_teardown; }

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

@test "a refused login leaves the caller's own hold as it was" {
	make_user
	export WRONG_URL=redis://ci:$WRONG@$PLACE
	# shellcheck disable=SC2016
	run -0 rlock run a -- sh -c 'rlock run a -- true
		rlock run -u "$WRONG_URL" a -- true; echo $?
		redis-cli -p "$PORT" hvals a'
	assert_line --index 1 77
	assert_line --index 2 1
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
	# shellcheck disable=SC2016
	local where='redis-cli -p "$PORT" info keyspace | grep -o "^db[0-9]*"'
	run -0 rlock run -u "redis://$PLACE/3" a -- sh -c "$where"
	assert_output db3
	run -0 rlock run -u "unix://$SERVER_SOCKET" --db 4 a -- sh -c "$where"
	assert_output db4
	rlock lock --db 2 --owner x --lease 20s a
	run -0 rlock run -n a -- true
}

@test "a database that the server has not got is refused, and nothing is locked in another one" {
	for _ in 1 2; do
		run rlock run --db 99 a -- touch ran
		assert_refused 78 'no such database'
		run rlock run -n -u "redis://$PLACE/99" a b -- touch ran
		assert_refused 78 'no such database'
		nothing_is_locked
		rlock run warm -- true
	done
	run rlock lock --owner x --lease 20s --db 99 a
	assert_refused 78 'no such database'
	nothing_is_locked
}

@test "a database that the server has not got is not unlocked or renewed in another one" {
	without_harm 78 'no such database' --db 99
}
