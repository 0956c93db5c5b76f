#!/usr/bin/env bats
# Passwords: their sources and precedence; which files are accepted; if the server denies the login, or lacks the database, rlock
# changes no lock as another user or in another database; and no password shows on a command line, in a message, a core or an environment where the caller had not put it.

load ../lib/usual
load ../lib/rights
load ../lib/passwords

# want_password: makes the server require a password for the default user.
want_password() {
	redis config set requirepass "$SECRET" >/dev/null
}

# make_user: creates the user ci, with a password and all rights. The default user still has all rights without a password.
make_user() {
	redis acl setuser ci on ">$SECRET" allkeys allchannels +@all >/dev/null
}

# ---- where the password is from ----

@test "the password of the URL precedes that of a file, and that one REDISCLI_AUTH, which applies to all servers" {
	want_password
	echo "$SECRET" >right
	echo "$WRONG" >wrong
	printf '%s\n' "url = redis://$PLACE" "password-file = $PWD/right" >right.conf
	printf '%s\n' "url = redis://site.invalid" "password-file = $PWD/wrong" >wrong.conf
	run -0 env -u RLOCK_URL rlock run --config right.conf a -- true
	REDISCLI_AUTH=$SECRET run -0 rlock run -u "unix://$SERVER_SOCKET" a -- true
	REDISCLI_AUTH=$SECRET run -0 rlock run --config wrong.conf a -- true
	run -0 rlock run --config wrong.conf --password-file right a -- true
	REDISCLI_AUTH=$WRONG run -0 rlock run --password-file right a -- true
	REDISCLI_AUTH=$SECRET run -77 rlock run --password-file wrong a -- true
	run -0 rlock run --password-file wrong -u "redis://:$SECRET@$PLACE" a -- true
	run -77 rlock run --password-file right -u "redis://:$WRONG@$PLACE" a -- true
}

@test "the first line of a password file is used, with any line end, and percent-encoding in a URL is decoded" {
	local format
	redis acl setuser ci on '>p@s:s/w%?#d' allkeys allchannels +@all >/dev/null
	run -0 rlock run -u "redis://ci:p%40s%3As%2Fw%25%3F%23d@$PLACE" a -- ask_redis "$PORT" client list
	assert_output --partial 'user=ci'
	for format in '%s\r\nanother line\n' '%s'; do
		# shellcheck disable=SC2059
		printf "$format" 'p@s:s/w%?#d' >file
		run -0 rlock run -u "redis://ci@$PLACE" --password-file file a -- ask_redis "$PORT" client list
		assert_output --partial 'user=ci'
	done
	run rlock run -u "redis://ci@$PLACE" a -- touch ran
	assert_refused 77 ''
}

@test "the configuration file's password is not sent to a server that -u or RLOCK_URL names" {
	echo "$SECRET" >file
	printf '%s\n' "url = redis://site.invalid" "password-file = $PWD/file" >rlock.conf
	redis config resetstat >/dev/null
	run -0 rlock run --config rlock.conf -u "redis://$PLACE" a -- true
	assert_output ''
	run -0 rlock lock --config rlock.conf --pid $$ a
	run -0 rlock renew --config rlock.conf --pid $$ a
	run -0 rlock unlock --config rlock.conf --pid $$ a
	# No password may have been sent: the server has none, and would deny any.
	run -0 redis info commandstats
	refute_output --regexp 'cmdstat_auth|cmdstat_hello'
}

# ---- which password files are accepted ----

@test "a password file that cannot be used is refused; the message names the option or the line that named it, and what to do" {
	local option name why remedy
	want_password
	echo "$SECRET" >unreadable
	chmod 0 unreadable
	printf '\n%s\n' "$SECRET" >second
	mkdir dir
	while IFS='|' read -r option name why remedy; do
		run as_mode_allows rlock run -u redis+sentinel://127.0.0.1:1/s "--$option" "$name" a -- touch ran
		assert_refused 78 ''
		assert_output "rlock: --$option '$name': $why; $remedy"
		# The option of the file is in its second line.
		printf '%s\n' 'url = redis+sentinel://127.0.0.1:1/s' "$option = $name" >rlock.conf
		run as_mode_allows env -u RLOCK_URL rlock run --config rlock.conf a -- touch ran
		assert_refused 78 ''
		assert_output "rlock: rlock.conf:2: $option '$name': $why; $remedy"
	done <<-'END'
		password-file|none|No such file or directory|create it with mode 600, and with the password in its first line
		password-file|unreadable|Permission denied|let this user read it by its group and mode 640, or name another file by --password-file
		password-file|second|its first line is empty|name a file whose first line is the password
		password-file|dir|Is a directory|name a file whose first line is the password
		sentinel-password-file|unreadable|Permission denied|let this user read it by its group and mode 640, or name another file by --sentinel-password-file
	END
}

@test "a world-writable password file is refused, and a world-readable one is a warning" {
	local mode
	want_password
	echo "$SECRET" >'my file'
	for mode in 620 602; do
		chmod "$mode" 'my file'
		run rlock run --password-file 'my file' a -- touch ran
		assert_refused 78 "--password-file 'my file': other users can write it, its mode is 0$mode"
		assert_output --regexp "then: chmod 600 'my file'\$"
	done
	chmod 644 'my file'
	ln -s 'my file' link
	run -0 rlock run --password-file link -u "redis://$PLACE/1" -u "redis://$PLACE/2" a -- true
	assert_output "rlock: --password-file 'link': any user can read it, its mode is 0644; try: chmod 600 link"
	chmod 640 'my file'
	run -0 rlock run --password-file link a -- true
	assert_output ''
}

@test "a password can come from a pipe, which may take as long as a connection" {
	want_password
	run -0 bash -c 'rlock run --password-file <(echo "$1") a -- true' bash "$SECRET"
	assert_output ''
	mkfifo -m 600 pipe
	run -78 timeout 30 rlock run -n --connect-timeout 300ms --password-file pipe a -- touch ran
	assert_output "rlock: --password-file 'pipe': a pipe that was not written to its end in time; give a longer --connect-timeout"
	refute file_exists ran
}

# ---- a wrong password, or none ----

@test "a wrong, missing or unneeded password is refused immediately, in one line that names its source or the remedy" {
	local from_file from_url
	run rlock run -u "redis://:$SECRET@$PLACE" a -- touch ran
	assert_refused 77 password
	want_password
	echo "$WRONG" >'wrong file'
	printf '%s\n' "url = redis://$PLACE" 'password-file = wrong file' >file.conf
	echo "url = redis://:$WRONG@$PLACE" >url.conf
	from_file="env -u RLOCK_URL rlock run --config file.conf" from_url="env -u RLOCK_URL rlock run --config url.conf"
	while IFS='|' read -r line reason; do
		eval "run $line a -- touch ran"
		assert_refused 77 "$reason"
	done <<-END
		rlock run|rlock: a: server requires a password; give one in the URL, by --password-file, --password-command or REDISCLI_AUTH
		env REDISCLI_AUTH=$WRONG timeout 30 rlock run -w 1h|; the password is from REDISCLI_AUTH: WRONGPASS
		rlock run -u redis://:$WRONG@$PLACE|; the password is in the URL from --url
		env RLOCK_URL=redis://:$WRONG@$PLACE rlock run|; the password is in the URL from RLOCK_URL
		rlock run --password-command 'echo $WRONG'|; the password is from --password-command
		rlock run --password-file 'wrong file'|; the password is from --password-file wrong file
		$from_file|; the password is from wrong file, the password-file in file.conf
		$from_url|; the password is in the URL from url.conf
		rlock run --config file.conf|; the password-file in file.conf is for the url there, not for the one from RLOCK_URL
	END
}

# The server accepts clients without a password here. So if rlock sent requests after a denied login, the server would carry them
# out.
@test "a denied login or a missing database acquires no lock as another user or in another database" {
	local option
	make_user
	# Do this twice: in the second round the server knows the scripts.
	for _ in 1 2; do
		for option in -n '-w 20s --db 3' '--at-least 20s'; do
			# shellcheck disable=SC2086
			run rlock run $option -u "redis://ci:$WRONG@$PLACE" a b -- touch ran
			assert_refused 77 password
		done
		run rlock run -n -u "redis://$PLACE/99" a b -- touch ran
		assert_refused 78 'no such database'
		run redis info keyspace
		refute_output --partial 'db'
		rlock run warm -- true
	done
	# Locks in different databases must not exclude each other.
	run -0 rlock run -u "redis://$PLACE/3" a -- rlock run -n --db 4 a -- redis-cli -p "$PORT" info keyspace
	assert_line --partial db3:
	assert_line --partial db4:
}

@test "a denied login or a missing database releases, breaks and renews no lock of another user or database" {
	local code text option words
	make_user
	rlock lock --owner x --lease 60s a
	# Load the scripts into the server.
	rlock renew --owner x --lease 60s a
	rlock unlock --owner x warm || :
	rlock unlock --force warm || :
	while read -r code text option; do
		for words in 'unlock --owner x' 'unlock --force' 'renew --owner x --lease 90s'; do
			# shellcheck disable=SC2086
			run rlock $words $option a
			assert_refused "$code" "$text"
		done
	done <<-END
		77 password -u redis://ci:$WRONG@$PLACE
		78 database --db 99
	END
	is_held a
	assert_ttl 1 "$(redis pttl a)" 60000
}

# ---- that no password is shown ----

# shows_no_secret PID: the process must exist, and its command line must not contain the password.
shows_no_secret() {
	run -0 tr '\0' ' ' <"/proc/$1/cmdline"
	assert_output --partial rlock
	refute_output --partial "$SECRET"
}

@test "a password in a URL does not stay on the command line of rlock, its renewer or a waiter, nor in a hold file" {
	needs_own_command_line
	local url
	make_user
	in_background rlock run -u "redis://ci:$SECRET@$PLACE" a -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
	find_renewer "$PID"
	shows_no_secret "$RENEWER"
	# The rest of the command line must be unchanged.
	shows_no_secret "$PID"
	assert_output --regexp "rlock run -u redis://ci:\*+@$PLACE a -- run_until_ended"
	rlock lock --pid $$ -u "redis://ci:$SECRET@$PLACE" b
	shows_no_secret "$(sed -n 's/^state \([0-9]*\) .*/\1/p' "$RLOCK_RUNTIME_DIR"/hold-*)"
	run ! grep -F "$SECRET" "$RLOCK_RUNTIME_DIR"/hold-*
	for url in "--url=redis://ci:$SECRET@$PLACE" "-vuredis://ci:$SECRET@$PLACE"; do
		in_background rlock run "$url" a -- true
		wait_until 5 has_waiters a
		shows_no_secret "$PID"
		kill "$PID"
		wait_until 5 has_waiters a 0
	done
}

# unit/test_usage.c and unit/test_config.c check the messages about wrong command and configuration lines.
@test "no message contains a password, whatever separates two URLs" {
	local between url
	make_user
	run -0 rlock run -v -u "redis://ci:$SECRET@$PLACE" a -- true
	assert_output --partial "redis://$PLACE"
	refute_output --partial "$SECRET"
	for url in "redis://:$SECRET@127.0.0.1:1" "rediss://ci:$SECRET@$PLACE"; do
		RLOCK_URL=$url run -69 rlock run -v --connect-timeout 500ms a -- true
		refute_output ''
		refute_output --partial "$SECRET"
	done
	for between in ' ' $'\n' $'\t' $'\r\n'; do
		RLOCK_URL="redis://a$between$SECRET@host" run -64 rlock rnu a -- true
		refute_output --partial "$SECRET"
	done
	printf 'url = unix://%s redis://ci:%s@%s\n' "$PWD/none" "$SECRET" "$PLACE" >rlock.conf
	run -69 env -u RLOCK_URL rlock check --config rlock.conf
	assert_output --regexp "unix://$PWD/none redis://ci:\*+@$PLACE, from "
	refute_output --partial "$SECRET"
}

@test "flock's messages about a wrong line contain no password" {
	local line
	while read -r line; do
		# shellcheck disable=SC2086
		run -64 rlock flock $line
		assert_line --index 0 --partial '***'
		refute_output --partial "$SECRET"
	done <<-END
		--url=redis://ci:$SECRET@h:1 a touch ran
		-n --password=$SECRET a touch ran
		-u redis://ci:$SECRET@h:1
		-u $SECRET@h
		-w redis://ci:$SECRET@h:1 a touch ran
		-E redis://ci:$SECRET@h:1 a touch ran
	END
	assert [ ! -e ran ]
}

@test "a variable or an option with a password in COMMAND is not shown when the command is not found" {
	local line
	run -127 rlock run a -- "REDISCLI_AUTH=$SECRET x" redis-cli ping
	assert_output --regexp ": 'REDISCLI_AUTH=\*+': command not found: .*; try: rlock run a -- sh -c 'REDISCLI_AUTH=\*+ redis-cli ping'\$"
	for line in "REDISCLI_AUTH=$SECRET true" "redis-cli --pass $SECRET ping" "redis-cli -a $SECRET" "true; PGPASSWORD='x $SECRET' psql"; do
		run -127 rlock run a -- "$line"
		assert_output --partial '***'
		refute_output --partial "$SECRET"
	done
	mkdir "TOKEN=$SECRET"
	run -126 rlock run a -- "./TOKEN=$SECRET"
	refute_output --partial "$SECRET"
	run -64 rlock run "REDISCLI_AUTH=$SECRET" a -- true
	refute_output --partial "$SECRET"
}

@test "neither the command's environment nor the server's data has a password that the caller had not set there" {
	make_user
	printf 'url = redis://ci:%s@%s\n' "$SECRET" "$PLACE" >rlock.conf
	run -0 env -u RLOCK_URL rlock run --config rlock.conf a -- sh -c 'env; $REDIS client list; $REDIS hgetall rlock_holds:{a}'
	assert_output --partial RLOCK_HELD=
	assert_output --partial user=ci
	refute_output --partial "$SECRET"
	run -0 env RLOCK_URL="redis://ci:$SECRET@$PLACE" REDISCLI_AUTH="$SECRET" rlock run a -- \
		sh -c 'printenv RLOCK_URL RLOCK_HELD REDISCLI_AUTH; echo "$1"' sh "redis://:$SECRET@$PLACE"
	assert_line --index 0 "redis://ci:$SECRET@$PLACE"
	refute_line --index 1 --partial "$SECRET"
	assert_line --index 2 "$SECRET"
	assert_line --index 3 "redis://:$SECRET@$PLACE"
}

# The kernel makes root the owner of /proc/PID when the process is not dumpable.
@test "rlock and its renewer cannot dump core while they know a password, and the command can" {
	local -a as=()
	make_user
	if [ "$(id -u)" = 0 ]; then
		as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
		unset XDG_CONFIG_HOME HOME
		"${as[@]}" "$(command -v rlock)" --version || skip "another user cannot run rlock here"
	fi
	in_background "${as[@]}" "$(command -v rlock)" run -u "redis://ci:$SECRET@$PLACE" secret -- sleep 60
	wait_until 5 has_child "$PID" sleep
	assert_equal "$(stat -c %u "/proc/$PID/auxv")" 0
	find_renewer "$PID"
	assert_equal "$(stat -c %u "/proc/$RENEWER/auxv")" 0
	refute [ "$(stat -c %u "/proc/$(command_of "$PID")/auxv")" = 0 ]
	pkill -P "$RENEWER" -x sleep
	wait "$PID" || :
}
