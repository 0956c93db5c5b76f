#!/usr/bin/env bats
# bats file_tags=long
# --password-command: rlock runs it isolated from COMMAND, and leaves none of its processes behind. And passwords that change while a
# lock is held or waited for, such as expiring tokens: each connection uses the current one, from a command or a file, and retries while
# there is time when the token service is down.

load ../lib/usual

# With a port: only a URL with a port can name a user.
setup_file() { start_server_at_port; }

setup() {
	umask 077
	directory_setup
	use_long_connect_timeout
	export RLOCK_URL=redis://ci@127.0.0.1:$PORT
	rotate first-t0ken
	# Let commands hang in a sleep with an argument that no other process on this machine has: by it has_hanging finds them.
	NAP=3600.$$$RANDOM
	NAP_COMMAND="^sleep ${NAP/./\\.}\$"
	# The program "token" prints the current token, and records its call.
	write_script token 'echo call >>"$HERE/calls"' 'cat "$HERE/token-now"'
}

teardown() {
	redis acl deluser ci >/dev/null
	end_commands
	pkill -KILL -f "$NAP_COMMAND" || :
	teardown_and_check_processes
}

# rotate TOKEN: TOKEN becomes the only password of the user ci.
rotate() {
	echo "$1" >token-now
	redis acl setuser ci reset on ">$1" allkeys allchannels +@all >/dev/null
}

# write_script NAME LINE...: writes the program NAME; sets COMMAND to its path. HERE is the test's directory, as a password command runs
# in another one.
write_script() {
	printf '%s\n' '#!/bin/sh' "HERE='$PWD'" "${@:2}" >"$1"
	chmod +x "$1"
	COMMAND=$PWD/$1
}

has_calls() {
	(($(wc -l <calls) >= $1))
}

# Closes the connections of the user ci, as a server with an idle timeout does.
close_connections() {
	redis client kill user ci >/dev/null
}

# is_renewed_by_another LEASE_MS: closes the connections. The lock must then be renewed over a new connection.
is_renewed_by_another() {
	close_connections
	redis pexpire a $(($1 * 3 / 4)) >/dev/null
	wait_until 10 ttl_is_above a $(($1 * 3 / 4))
}

# has_hanging COUNT: whether COUNT processes of the password command hang.
has_hanging() {
	[ "$(pgrep -cf "$NAP_COMMAND")" = "$1" ]
}

# has_only_command PID: whether that rlock and its renewer have no other child than the command, not even a zombie. rlock may have
# replaced the renewer.
has_only_command() {
	find_children_of_rlock "$1"
	[ ${#CHILDREN[@]} = $((${#RENEWERS[@]} + 1)) ]
}

# ---- the password ----

@test "sh runs the password command, and the password is the first line that it prints, with any line end" {
	local text
	for text in 'first-t0ken' 'first-t0ken\r\n'; do
		run -0 rlock run --password-command "printf '$text'" a -- true
		assert_output ''
	done
	# Let the command print more than fits into a pipe.
	run -0 rlock run --password-command 'x=first; echo "$x-t0ken" | cat; head -c 300000 /dev/zero' a -- true
	assert_output ''
	run -0 rlock run -v --password-command "$COMMAND" a -- sh -c 'env; ls -l /proc/self/fd'
	assert_line "rlock: redis://127.0.0.1:$PORT/0: the password was fetched"
	refute_output --partial first-t0ken
	refute_output --partial anon_inode
	assert_equal "$(wc -l <calls)" 1
}

@test "the password command may be in the configuration file; the URL's password precedes it, and it precedes REDISCLI_AUTH" {
	printf '%s\n' "url = $RLOCK_URL" "password-command = $COMMAND" >conf
	run -77 rlock run --config conf a -- touch ran
	assert_output --partial '; the password-command in conf is for the url there, not for the one from RLOCK_URL'
	run -0 rlock run --password-command "$COMMAND" -u "redis://ci:first-t0ken@127.0.0.1:$PORT" a -- true
	refute file_exists calls
	REDISCLI_AUTH=wr0ng run -0 rlock run --password-command "$COMMAND" a -- true
	unset RLOCK_URL
	run -0 rlock run --config conf a -- true
	assert_equal "$(wc -l <calls)" 2
	run -78 rlock run --config <(sed 's/d = .*/d = false/' conf) a -- touch ran
	assert_one_line ': password command ended with status 1; the password is from the password-command in /'
}

# ---- no password ----

@test "when the password command fails, rlock exits with 78 and the reason in one line, and the command's own messages are shown" {
	local line reason
	while IFS='|' read -r line reason; do
		run -78 rlock run --password-command "$line" a -- touch ran
		assert_one_line "^rlock: a: no password for redis://127.0.0.1:$PORT/0: $reason; the password is from --password-command$"
		refute file_exists ran
	done <<-'END'
		echo first-t0ken; exit 3|password command ended with status 3
		echo first-t0ken; kill -9 $$|password command was ended by signal 9
		true|password command: it printed nothing
		echo|password command: its first line is empty
		printf "a\000b\n"|password command: a NUL byte in its first line
	END
	run -78 rlock run --password-command 'echo no token today >&2; exit 1' a -- touch ran
	assert_line 'no token today'
	assert_equal "${#lines[@]}" 2
}

@test "a password command that fails is retried within a wait time, and not without one" {
	write_script flaky 'echo call >>"$HERE/calls"' '[ "$(wc -l <"$HERE/calls")" -gt 2 ] || exit 1' 'cat "$HERE/token-now"'
	run -78 rlock run --password-command "$COMMAND" a -- touch ran
	run -0 rlock run -w 20s --password-command "$COMMAND" a -- true
	assert_equal "$(wc -l <calls)" 3
}

@test "a password command that hangs is killed with its children at --connect-timeout, and when a signal ends rlock" {
	local signal status
	run -78 rlock run --connect-timeout 2s \
		--password-command "exec 2>/dev/null; setsid sleep $NAP & sleep $NAP | cat" a -- touch ran
	assert_output --regexp '^rlock: a: no password for .* in time; the password is from --password-command$'
	wait_until 5 has_hanging 0
	while read -r signal status; do
		in_background rlock run --connect-timeout 1m \
			--password-command "setsid sleep $NAP & sleep $NAP" a -- touch ran
		wait_until 5 has_hanging 2
		kill "-$signal" "$PID"
		ended_with "$status"
		wait_until 5 has_hanging 0
	done <<<$'TERM 143\nKILL 137'
}

# ---- the command's surroundings ----

@test "the password command gets the caller's environment, an empty input, no terminal and the directory /" {
	write_script look 'exec >"$HERE/seen"' 'pwd' 'cat || echo closed' 'echo "$MINE"' 'env | grep -c "^RLOCK_HELD="' \
		'ls /proc/self/fd | paste -sd " "' 'test -t 2 && echo terminal' \
		'sed -n "s/^Sig\(Blk\|Ign\):\t//p" /proc/self/status' ':'
	MINE=caller run -78 env RLOCK_HELD="$(printf 'redis:%%2F%%2Fh/plain/x/o:1/%032d/9' 0)" \
		rlock run --connect-timeout 1m --password-command "$COMMAND" a -- touch ran
	run -0 cat seen
	assert_line --index 0 /
	assert_line --index 1 caller
	assert_line --index 2 0
	# Only the standard streams may be open, and descriptor 3, the directory that ls reads. If standard input were closed, ls
	# would get descriptor 0 for that.
	assert_line --index 3 '0 1 2 3'
	assert_line --index 4 "$(sed -n 's/^SigBlk:\t//p' /proc/self/status)"
	assert_line --index 5 "$(sed -n 's/^SigIgn:\t//p' /proc/self/status)"
	refute_line terminal
}

@test "terminating COMMAND sends no signal to a password command, and --wait-all does not wait for it" {
	# Let the password command of the second connection hang, together with an orphaned process. Both would record a SIGTERM.
	write_script hang 'trap "echo SIGTERM >>\"$HERE/signals\"" TERM' "sleep $NAP & wait; wait"
	write_script hanging 'echo call >>"$HERE/calls"' \
		'[ "$(wc -l <"$HERE/calls")" -eq 2 ] || exec cat "$HERE/token-now"' \
		'(setsid "$HERE/hang" &)' 'exec "$HERE/hang"'
	hold_in_background a -t 30s --connect-timeout 1m --grace 1s --wait-all --password-command "$COMMAND"
	close_connections
	wait_until 30 has_hanging 2
	kill "$PID"
	ended_with 143
	wait_until 5 has_hanging 0
	refute file_exists signals
}

# ---- passwords that change ----

@test "a waiter uses the current password for both of its connections" {
	hold_by_foreign_client a
	in_background rlock run --password-command "$COMMAND" a -- touch ran
	# The second call of the password command is for the subscription, which comes after the queue was joined.
	wait_until 5 has_waiters a
	wait_until 5 eval '! no_subscribers'
	assert_equal "$(wc -l <calls)" 2
	rotate second-t0ken
	close_connections
	wait_until 5 has_calls 4
	wait_until 5 has_waiters a
	release_by_foreign_client a
	ended_with 0
	assert file_exists ran
}

@test "a token service that fails for a while does not lose the lock; for a whole lease it does, and the message says why" {
	# The program "maybe" records each call, and fails while the file "away" exists. The server denies an old token.
	write_script maybe 'echo call >>"$HERE/calls"' 'test ! -e "$HERE/away" && cat "$HERE/token-now"'
	in_background sh -c 'exec rlock run -t 30s --password-command "$1" a -- run_until_ended 2>stderr' sh "$COMMAND"
	wait_until 5 has_child "$PID" run_until_ended
	: >away
	close_connections
	wait_until 30 has_calls 2
	echo expired >token-now
	rm away
	wait_until 10 has_calls 4
	# No renewal can succeed yet.
	redis pexpire a 25000 >/dev/null
	rotate second-t0ken
	wait_until 20 ttl_is_above a 25000
	# Wait longer than for a renewal, which reaps a helper that has ended late.
	wait_until 15 has_only_command "$PID"
	: >away
	close_connections
	wait_until 60 is_gone "$PID"
	ended_with 76
	run -0 cat stderr
	assert_output --partial 'password command ended with status 1'
}

@test "renewals and release of a lock without a command use the current password, also with a relative path" {
	run -0 rlock lock -t 18s --password-file token-now --pid $$ a
	rotate second-t0ken
	is_renewed_by_another 18000
	rotate third-t0ken
	close_connections
	run -0 rlock unlock --password-file token-now --pid $$ a
	no_keys
}

@test "a password file that is missing, empty or untrusted leaves the last password in use" {
	hold_in_background a -t 12s --password-file token-now
	rm token-now
	is_renewed_by_another 12000
	: >token-now
	is_renewed_by_another 12000
	echo wr0ng-t0ken >token-now
	chmod 622 token-now
	is_renewed_by_another 12000
	rm token-now
	mkfifo token-now
	is_renewed_by_another 12000
	# The helper that has read the file must have ended.
	wait_until 5 has_only_command "$PID"
	end_commands
	ended_with 0
	no_keys
}

@test "a helper that needs long to kill what a password command has started is reaped at the next renewal" {
	echo 'for ((i = 0; i < 1000; i++)); do sleep 1000 & done; echo first-t0ken' >many
	# After --connect-timeout rlock would give up the command, and a slow machine needs long to start so many processes.
	in_background rlock run -t 6s --connect-timeout 5m --password-command "bash '$PWD/many'" a -- run_until_ended
	wait_until 100 has_child "$PID" run_until_ended
	wait_until 10 has_only_command "$PID"
}

@test "a pipe is read once, and its password is used for all connections" {
	in_background bash -c 'exec rlock run -t 9s --password-file <(cat token-now) a -- run_until_ended'
	wait_until 5 has_child "$PID" run_until_ended
	rm token-now
	is_renewed_by_another 9000
}
