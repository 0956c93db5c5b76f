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

@test "a wrong password is refused in one line" {
	want_password
	run rlock run -u "redis://:$WRONG@$PLACE" a -- touch ran
	assert_refused 77 password
	REDISCLI_AUTH=$WRONG run rlock run a -- touch ran
	assert_refused 77 password
	assert_equal "$(redis_with_password dbsize)" 0
}

@test "a missing password is refused in one line, and what to do is said" {
	want_password
	run rlock run a -- touch ran
	assert_refused 77 --password-file
	assert_output --regexp '^rlock: a: '
	run rlock unlock --owner x a
	assert_refused 77 password
	run rlock renew --owner x a
	assert_refused 77 password
}

@test "with a refused password it is said where that came from" {
	want_password
	echo "$WRONG" >'wrong file'
	run rlock run -u "redis://:$WRONG@$PLACE" a -- touch ran
	assert_refused 77 ': the password is in the URL from --url'
	RLOCK_URL=redis://:$WRONG@$PLACE run rlock run a -- touch ran
	assert_refused 77 ': the password is in the URL from RLOCK_URL'
	run rlock run --password-file 'wrong file' a -- touch ran
	assert_refused 77 ': the password is from --password-file wrong file'
	REDISCLI_AUTH=$WRONG run rlock unlock --owner x a
	assert_refused 77 ': the password is from REDISCLI_AUTH'
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

@test "an unknown user is refused in one line" {
	run rlock run -u "redis://nobody:$SECRET@$PLACE" a -- touch ran
	assert_refused 77 password
}

@test "a user that is switched off is refused" {
	make_user off
	run rlock run -u "redis://ci:$SECRET@$PLACE" a -- touch ran
	assert_refused 77 password
}

@test "a password for a server that has none is refused" {
	run rlock run -u "redis://:$SECRET@$PLACE" a -- touch ran
	assert_refused 77 password
	nothing_is_locked
}

@test "with a wait time a wrong password is refused at once all the same" {
	local start
	want_password
	start=$(now_ms)
	run rlock run -w 20s -u "redis://:$WRONG@$PLACE" a -- touch ran
	assert_refused 77 password
	assert [ $(($(now_ms) - start)) -lt 5000 ]
}

# Every client is let in without a password here, so that what was sent after a denied login is done.
@test "a refused login locks nothing as the user that one is without it" {
	local option
	make_user
	for option in -n '-w 2s' '-l 20s' '--at-least 20s' '--db 3'; do
		# The second time the server knows the script already.
		for _ in 1 2; do
			# shellcheck disable=SC2086
			run rlock run $option -u "redis://ci:$WRONG@$PLACE" a b -- touch ran
			assert_refused 77 password
			nothing_is_locked
			rlock run warm -- true
		done
	done
	run rlock lock --owner x --lease 20s -u "redis://ci:$WRONG@$PLACE" a
	assert_refused 77 password
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

@test "a denied login releases no lock" {
	make_user
	rlock lock --owner x --lease 20s a
	rlock unlock --owner y warm || :
	run rlock unlock --owner x -u "redis://ci:$WRONG@$PLACE" a
	assert_refused 77 password
	is_held a
}

@test "a denied login breaks no lock" {
	make_user
	rlock lock --owner x --lease 20s a
	rlock unlock --force warm || :
	run rlock unlock --force -u "redis://ci:$WRONG@$PLACE" a
	assert_refused 77 password
	is_held a
}

@test "a denied login renews no lock" {
	make_user
	rlock lock --owner x --lease 20s a
	rlock renew --owner x --lease 20s a
	run rlock renew --owner x --lease 90s -u "redis://ci:$WRONG@$PLACE" a
	assert_refused 77 password
	assert [ "$(redis pttl a)" -le 20000 ]
}

# ---- databases ----

@test "the database of the URL is used, and so is --db" {
	# shellcheck disable=SC2016
	local where='redis-cli -p "$PORT" info keyspace | grep -o "^db[0-9]*"'
	run -0 rlock run -u "redis://$PLACE/3" a -- sh -c "$where"
	assert_output db3
	run -0 rlock run --db 3 a -- sh -c "$where"
	assert_output db3
	run -0 rlock run -u "unix://$SERVER_SOCKET?db=4" a -- sh -c "$where"
	assert_output db4
	nothing_is_locked
}

@test "a lock in one database does not exclude the same name in another" {
	rlock lock --db 2 --owner x --lease 20s a
	run -0 rlock run -n a -- true
	run -75 rlock run -n --db 2 a -- true
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
	rlock lock --owner x --lease 20s a
	rlock renew --owner x --lease 20s a
	rlock unlock --owner x warm || :
	rlock unlock --force warm || :
	run rlock renew --owner x --lease 90s --db 99 a
	assert_refused 78 'no such database'
	run rlock unlock --owner x --db 99 a
	assert_refused 78 'no such database'
	run rlock unlock --force --db 99 a
	assert_refused 78 'no such database'
	is_held a
	assert [ "$(redis pttl a)" -le 20000 ]
}
