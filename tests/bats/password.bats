#!/usr/bin/env bats
# Passwords: where they come from, that they are not seen, and what happens when the server refuses them;
# databases that it refuses; and users that lack a right.

load ../lib/helpers
load ../lib/rights

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
teardown_file() { stop_server; }
setup() {
	umask 077 # for password files
	REDISCLI_AUTH=$SECRET redis config set requirepass '' >/dev/null 2>&1
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
	redis acl deluser ci >/dev/null
	redis script flush >/dev/null
	redis acl log reset >/dev/null
	PLACE=127.0.0.1:$PORT
	export RLOCK_URL=redis://$PLACE
}
teardown() {
	export RLOCK_URL=redis://$PLACE
	let_go
	common_teardown
}

WRONG=wr0ng-w0rd

# ---- helpers ----

# The server wants a password of every client that names no user.
want_password() {
	redis config set requirepass "$SECRET" >/dev/null
}

admin() {
	REDISCLI_AUTH=$SECRET redis "$@"
}

# The user ci, with all rights but for what the arguments say; every other user may do everything without a
# password.
make_user() {
	redis acl setuser ci on ">$SECRET" allkeys allchannels +@all "$@" >/dev/null
}

# assert_refused STATUS TEXT: what run has run said one line with TEXT, which shows no secret.
assert_refused() {
	assert_equal "$status" "$1"
	assert_equal "${#lines[@]}" 1
	assert_output --regexp '^rlock: '
	assert_output --partial -- "$2"
	refute_output --partial "$SECRET"
	refute_output --partial "$WRONG"
	refute file_exists ran
}

# Not in any database.
nothing_is_locked() {
	run redis info keyspace
	refute_output --partial 'db'
}

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
	wait_until 5 lock_there
	# Of a whole lease and more, as long as nothing renews it.
	run -0 admin -r 330 -i 0.01 exists a
	refute_line 0
	let_go
	wait "$PID"
	assert_equal "$(admin dbsize)" 0
}
lock_there() {
	[ "$(admin exists a)" = 1 ]
}

@test "a waiter has the password too" {
	want_password
	in_background rlock run -u "redis://:$SECRET@$PLACE" a -- until_let_go
	wait_until 5 lock_there
	run -75 rlock run -u "redis://:$SECRET@$PLACE" -w 2s a -- touch ran
	assert_refused 75 'held by'
}

@test "a lock without a command has the password for its unlock too" {
	want_password
	run -0 rlock lock -u "redis://:$SECRET@$PLACE" --pid $$ a
	assert_equal "$(admin exists a)" 1
	run -0 rlock unlock -u "redis://:$SECRET@$PLACE" --pid $$ a
	assert_equal "$(admin exists a)" 0
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

# shellcheck disable=SC2016
@test "a password can come from a pipe" {
	want_password
	run -0 bash -c 'rlock run --password-file <(echo "$1") a -- true' bash "$SECRET"
	assert_output ''
	run -0 sh -c 'echo "$1" | rlock run --password-file /dev/stdin a -- true' sh "$SECRET"
	assert_output ''
}

# ---- a wrong one, or none ----

@test "a wrong password is refused in one line" {
	want_password
	run rlock run -u "redis://:$WRONG@$PLACE" a -- touch ran
	assert_refused 77 password
	REDISCLI_AUTH=$WRONG run rlock run a -- touch ran
	assert_refused 77 password
	assert_equal "$(admin dbsize)" 0
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

@test "the same name in two databases is two locks" {
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

# ---- it is not to be seen ----

# shows_no_secret PID: in the command line of a process, which is there.
shows_no_secret() {
	run -0 tr '\0' ' ' <"/proc/$1/cmdline"
	assert_output --partial rlock
	refute_output --partial "$SECRET"
}

waits() {
	redis pubsub channels | grep -qxF 'redisson_lock__channel:{a}'
}

has_no_waiter() {
	redis_says '' pubsub channels
}

@test "a password in a URL does not stay on the command line of rlock or its renewer" {
	need_own_command_line
	want_password
	in_background rlock run -u "redis://:$SECRET@$PLACE" a -- until_let_go
	wait_until 5 lock_there
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
	for url in "--url=redis://ci:$SECRET@$PLACE" "-uredis://ci:$SECRET@$PLACE" "-vuredis://ci:$SECRET@$PLACE"; do
		in_background rlock run "$url" a -- true
		wait_until 5 waits
		shows_no_secret "$PID"
		kill "$PID"
		wait_until 5 is_gone "$PID"
		wait_until 5 has_no_waiter
	done
}

@test "the renewer of a lock without a command shows no password" {
	need_own_command_line
	want_password
	rlock lock --pid $$ -u "redis://:$SECRET@$PLACE" a
	# Which one is ours cannot be seen; so none on this machine may have this password.
	pgrep -x rlock-renewer | sed 's|.*|/proc/&/cmdline|' >renewers
	assert [ -s renewers ]
	run xargs grep -alsF "$SECRET" <renewers
	assert_output ''
	run -0 rlock unlock --pid $$ -u "redis://:$SECRET@$PLACE" a
}

@test "what belongs to the command is not touched, even if it looks like a password" {
	want_password
	run -0 rlock run -u "redis://:$SECRET@$PLACE" a -- echo "redis://:$SECRET@$PLACE"
	assert_output "redis://:$SECRET@$PLACE"
}

@test "no message has a password in it" {
	local url
	want_password
	run rlock run -v -u "redis://:$SECRET@$PLACE" a -- true
	assert_output --partial "redis://$PLACE"
	refute_output --partial "$SECRET"
	for url in "redis://:$SECRET@127.0.0.1:1" "redis://ci:$SECRET@$PLACE/x" "redis://ci:$SECRET@:x" \
		"http://ci:$SECRET@$PLACE" "redis:/ci:$SECRET@$PLACE" "ci:$SECRET@$PLACE" "redis://ci:$SECRET" \
		"redis://ci:$SECRET@$PLACE?x=1" "redis://ci:$SECRET/@$PLACE" "redis://ci:$SECRET@x@$PLACE" \
		"redis://ci:$SECRET%@$PLACE" "rediss://ci:$SECRET@$PLACE" "redis://$PLACE?password=$SECRET"; do
		run rlock run -v -u "$url" a -- true
		assert_failure
		refute_output ''
		refute_output --partial "$SECRET"
		RLOCK_URL=$url run rlock run -v a -- true
		assert_failure
		refute_output --partial "$SECRET"
		run rlock run -u "$url" a true
		refute_output --partial "$SECRET"
		run rlock -u "$url" run a -- true
		refute_output --partial "$SECRET"
	done
}

@test "a bad line of the configuration file is told without the password in it" {
	printf 'url = redis://ci:%s@localhost:x\n' "$SECRET" >rlock.conf
	run rlock run --config rlock.conf a -- touch ran
	assert_refused 78 rlock.conf:1
	printf 'redis://ci:%s@localhost\n' "$SECRET" >rlock.conf
	run rlock run --config rlock.conf a -- touch ran
	assert_refused 78 rlock.conf:1
	printf 'redis://ci:%s@localhost = x\n' "$SECRET" >rlock.conf
	run rlock run --config rlock.conf a -- touch ran
	assert_refused 78 rlock.conf:1
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

@test "a password that the caller put into the environment is still there for the command" {
	want_password
	run -0 env REDISCLI_AUTH="$SECRET" rlock run a -- printenv REDISCLI_AUTH
	assert_output "$SECRET"
	run -0 env RLOCK_URL="redis://:$SECRET@$PLACE" rlock run a -- printenv RLOCK_URL RLOCK_HELD
	assert_line --index 0 "redis://:$SECRET@$PLACE"
	refute_line --index 1 --partial "$SECRET"
}

@test "the password does not end up on the server or in its list of clients" {
	make_user
	# shellcheck disable=SC2016
	run -0 rlock run -u "redis://ci:$SECRET@$PLACE" a -- sh -c '
		ask_redis "$PORT" client list; redis-cli -p "$PORT" hgetall rlock_holds:{a}'
	refute_output --partial "$SECRET"
}

# The kernel gives the files of a process without core dumps to root, whatever user runs it.
@test "neither rlock nor its renewer can dump core while it knows a password" {
	local -a as=()
	make_user
	if [ "$(id -u)" = 0 ]; then
		as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
		unset XDG_CONFIG_HOME HOME
		"${as[@]}" "$(command -v rlock)" --version || skip "another user cannot run rlock here"
	fi
	in_background "${as[@]}" "$(command -v rlock)" run -u "redis://$PLACE" plain -- sleep 60
	wait_until 5 is_held plain
	wait_until 5 has_renewer "$PID"
	refute [ "$(stat -c %u "/proc/$PID/auxv")" = 0 ]
	in_background "${as[@]}" "$(command -v rlock)" run -u "redis://ci:$SECRET@$PLACE" secret -- sleep 60
	wait_until 5 is_held secret
	wait_until 5 has_renewer "$PID"
	assert_equal "$(stat -c %u "/proc/$PID/auxv")" 0
	assert_equal "$(stat -c %u "/proc/$(renewer_of "$PID")/auxv")" 0
	pkill -P "${BACKGROUND[0]}" -x sleep
	pkill -P "${BACKGROUND[1]}" -x sleep
	wait "${BACKGROUND[@]}" || :
}

@test "the command can dump core, whatever rlock knows" {
	local -a as=()
	make_user
	if [ "$(id -u)" = 0 ]; then
		as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
		unset XDG_CONFIG_HOME HOME
		"${as[@]}" "$(command -v rlock)" --version || skip "another user cannot run rlock here"
	fi
	# shellcheck disable=SC2016
	run -0 "${as[@]}" "$(command -v rlock)" run -u "redis://ci:$SECRET@$PLACE" a -- \
		stat -c %u /proc/self/auxv
	refute_output 0
}

# ---- a user with few rights ----

# The user with these rights makes the calls.
as_least_rights() {
	least_rights
	export RLOCK_URL=$CI_URL
}

# all_of_kind VERB LOCK_VERB: what can be done with a lock that no other wants.
all_of_kind() {
	local verb=$1 lock=$2
	run -0 rlock "$verb" -n nightly nightly2 -- ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
	run -0 rlock "$verb" -t 3s nightly -- sleep 1.4
	assert_output ''
	run -0 rlock "$verb" --db 3 nightly -- true
	run -0 rlock "$verb" 'nightly {x' -- rlock "$verb" 'nightly {x' -- true
	run -0 rlock "$verb" --at-least 50ms nightly -- true
	run -0 rlock "$verb" -w 5s nightly -- true
	# A reader does not wait for what another one is to keep.
	wait_until 5 server_is_empty
	run -0 rlock "$lock" --owner x --lease 20s nightly
	run -0 rlock renew --owner x --lease 20s nightly
	run -0 rlock unlock --owner x nightly
	run -1 rlock unlock --owner x nightly
	run -0 rlock "$lock" --pid $$ nightly
	run -0 rlock renew --pid $$ nightly
	run -0 rlock unlock --pid $$ nightly
	run -0 rlock "$lock" --owner x --lease 20s nightly
	run -0 rlock unlock --force nightly
	assert_output --regexp 'lock broken: it was held by .*x:0(:write)?\)?, which may still run$'
	assert_equal "$(redis acl log)" ''
	wait_until 5 server_is_empty
}

# What has expired counts until the server comes by.
server_is_empty() {
	[ "$(redis info keyspace | grep -c ^db)" = 0 ]
}

# waiting_of_kind HOLD WAIT: a waiter by the verb WAIT for HOLD gives up, is ended, gets the lock when it is
# released, when it is broken, and when its lease is over.
waiting_of_kind() {
	local hold=$1 wait=$2
	run -0 rlock "$hold" --owner x --lease 20s nightly
	run -75 rlock "$wait" -w 1s nightly -- true
	assert_output --partial 'held by'
	in_background rlock "$wait" nightly -- true
	wait_until 5 waits_as_any
	kill "$PID"
	wait "$PID" || :
	wait_until 5 has_no_waiter
	in_background rlock "$wait" -w 20s nightly -- true
	wait_until 5 waits_as_any
	run -0 rlock unlock --owner x nightly
	wait "$PID"
	run -0 rlock "$hold" --owner x --lease 20s nightly
	in_background rlock "$wait" -w 20s nightly -- true
	wait_until 5 waits_as_any
	run -0 rlock unlock --force nightly
	wait "$PID"
	run -0 rlock "$hold" --owner x --lease 1s nightly
	run -0 rlock "$wait" -w 20s nightly -- true
	assert_equal "$(redis acl log)" ''
	wait_until 5 server_is_empty
}
waits_as_any() {
	[ "$(redis pubsub channels)" != '' ]
}

@test "the rights that the manual lists are enough for everything" {
	as_least_rights
	all_of_kind run lock
	all_of_kind fair fair
	all_of_kind rlock rlock
	all_of_kind wlock wlock
}

@test "the rights that the manual lists are enough to wait for a lock of each kind" {
	as_least_rights
	waiting_of_kind lock lock
	waiting_of_kind fair fair
	waiting_of_kind rlock wlock
	waiting_of_kind wlock rlock
	waiting_of_kind wlock wlock
}

@test "the rights that the manual lists are enough for what one kind of lock has to do with another" {
	as_least_rights
	waiting_of_kind lock fair
	waiting_of_kind fair lock
	run -0 rlock wlock nightly -- rlock rlock nightly -- true
	run -64 rlock rlock nightly -- rlock wlock nightly -- true
	run -78 rlock rlock nightly -- rlock run nightly -- true
	run -78 rlock fair nightly -- rlock rlock nightly -- true
	run -0 rlock rlock --owner x --lease 20s nightly
	run -0 rlock rlock --owner y --lease 20s nightly
	run -0 rlock unlock --force --holder x:0 nightly
	run -0 rlock unlock --force --holder y:0 nightly
	assert_equal "$(redis acl log)" ''
	nothing_is_locked
}

@test "the rights that the manual lists are enough for fencing tokens" {
	local verb
	as_least_rights
	for verb in run fair; do
		run -0 rlock "$verb" --fence nightly -- printenv RLOCK_TOKEN
		run -0 rlock "$verb" nightly -- true
	done
	assert_equal "$(redis get 'redisson_lock_token:{nightly}')" 4
	assert_equal "$(redis acl log)" ''
}

@test "the rights that the manual lists are enough for a majority of several servers" {
	as_least_rights
	# Databases in the place of servers, which count when they have been up for a lease.
	run -0 rlock run -t 3s -w 20s -u "$CI_URL/1 $CI_URL/2 $CI_URL/3" --quorum majority nightly -- true
	assert_output ''
	assert_equal "$(redis acl log)" ''
	nothing_is_locked
}

@test "the rights that the manual lists are enough for a line with a dead one in it" {
	as_least_rights
	redis zadd 'redisson_lock_timeout:{nightly}' 1 java:1 >/dev/null
	redis rpush 'redisson_lock_queue:{nightly}' java:1 java:2 >/dev/null
	run -0 rlock run nightly -- true
	assert_output ''
	redis zadd 'redisson_lock_timeout:{nightly}' 1 java:1 >/dev/null
	redis rpush 'redisson_lock_queue:{nightly}' java:1 java:2 >/dev/null
	run -0 rlock fair nightly -- true
	assert_output ''
	assert_equal "$(redis acl log)" ''
	nothing_is_locked
}

@test "the rights that the manual lists let others' locks alone" {
	least_rights
	run rlock run -n -u "$CI_URL" daily -- touch ran
	assert_refused 77 '~'
	nothing_is_locked
}

# with_all_but RULE... : the rights of the manual, without some.
with_all_but() {
	redis acl deluser ci >/dev/null
	least_rights
	redis acl setuser ci "$@" >/dev/null
	redis script flush >/dev/null
}

# The lock is free, and whatever else is there expires.
nothing_is_left() {
	local key
	is_free nightly
	for key in $(redis keys '*'); do
		assert [ "$(redis pttl "$key")" -ge 0 ]
	done
}

ACQUIRE_RIGHTS='hlen hget hexists hkeys exists time hincrby hset hdel del pttl pexpire'

@test "without one of the rights to acquire a lock it is refused, and nothing stays locked" {
	local right
	for right in evalsha $ACQUIRE_RIGHTS; do
		with_all_but "-$right"
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_refused 77 denied
		nothing_is_left
		# Again, with the script at hand.
		rlock run warm -- true
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_refused 77 denied
		nothing_is_left
	done
}

@test "without one of the rights to acquire a lock the one that is missing is named" {
	local right
	for right in evalsha $ACQUIRE_RIGHTS; do
		with_all_but "-$right"
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_output --partial "+$right"
		redis flushall >/dev/null
	done
}

@test "without the right to send a script that the server does not know it is named" {
	with_all_but -eval
	run rlock run -n -u "$CI_URL" nightly -- touch ran
	assert_refused 77 +eval
	nothing_is_locked
}

@test "without the right to choose a database it is named, and nothing is locked in another one" {
	with_all_but -select
	run rlock run -n --db 3 -u "$CI_URL" nightly -- touch ran
	assert_refused 77 +select
	nothing_is_locked
}

@test "without the right to look at the holder the missing one is named" {
	local right
	redis hset nightly x:1 1 >/dev/null
	for right in hkeys hvals subscribe; do
		with_all_but "-$right"
		run rlock run -w 5s -u "$CI_URL" nightly -- touch ran
		assert_refused 77 "+$right"
	done
}

@test "without a right to the lock's keys the rule is named, and nothing is locked" {
	local keys
	for keys in '~nightly*' '~nightly* ~rlock_*' '~nightly* ~redisson_*' '~rlock_* ~redisson_*'; do
		# shellcheck disable=SC2086
		with_all_but resetkeys $keys
		run rlock run -n -u "$CI_URL" nightly -- touch ran
		assert_refused 77 '~'
		nothing_is_locked
	done
}

@test "without a right to the lock's channel a caller that has to wait is told the rule" {
	with_all_but resetchannels
	redis hset nightly x:1 1 >/dev/null
	run rlock run -w 5s -u "$CI_URL" nightly -- touch ran
	assert_refused 77 '&redisson_*'
}

@test "without the right to notify waiters the command's status stands, and a warning is given" {
	local rule
	for rule in -publish resetchannels; do
		with_all_but "$rule"
		run -7 rlock run -n -u "$CI_URL" nightly -- sh -c 'exit 7'
		assert_equal "${#lines[@]}" 1
		assert_output --regexp '^rlock: nightly: '
		[ "$rule" != -publish ] || assert_output --partial +publish
		[ "$rule" != resetchannels ] || assert_output --partial '&redisson_*'
		refute_output --partial "$SECRET"
		nothing_is_locked
	done
}

@test "when the right to release a lock is taken away the command's status stands, and a warning names it" {
	least_rights
	# shellcheck disable=SC2016
	run -7 rlock run -l 5s -u "$CI_URL" nightly -- \
		sh -c 'ask_redis "$SERVER_SOCKET" acl setuser ci -hget >/dev/null; exit 7'
	assert_equal "${#lines[@]}" 1
	assert_output --partial +hget
	wait_until 10 is_free nightly
}

@test "without the right to give oneself a name all goes well" {
	with_all_but '-client|setname'
	run -0 rlock run -n -u "$CI_URL" nightly -- true
	assert_output ''
}

@test "without a right to break a lock it is named, and the lock is left alone" {
	redis hset nightly x:1 1 >/dev/null
	with_all_but -del
	run rlock unlock --force -u "$CI_URL" nightly
	assert_refused 77 +del
	is_held nightly
}

@test "a right that is taken away while the lock is held does not harm its release" {
	least_rights
	in_background rlock run -u "$CI_URL" nightly -- until_let_go
	wait_until 5 is_held nightly
	redis acl setuser ci -hset -subscribe -select >/dev/null
	let_go
	wait "$PID"
	nothing_is_locked
}
