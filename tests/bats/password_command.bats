#!/usr/bin/env bats
# bats file_tags=long
# --password-command: the password is what a command prints; the command itself is met by nothing else that rlock does,
# and leaves nothing. What it prints at later connects is tested by password_rotated.bats.

load ../lib/usual
load ../lib/password_commands

# Behind a port, because a user can be named in the URL of a port alone.
setup_file() { start_server_at_port; }
setup() { password_command_setup; }
teardown() { password_command_teardown; }

# assert_no_password REASON: what run has run said one line, of a lock without a password.
assert_no_password() {
	assert_one_line "^rlock: a: no password for redis://127.0.0.1:$PORT/0: $1: the password is from --password-command$"
	refute file_exists ran
}

# ---- the password ----

@test "the password is the first line that the command prints, which is one of sh, however the line ends" {
	local text
	for text in 'first-t0ken' 'first-t0ken\r\n' 'first-t0ken\nmore\n\nof it'; do
		run -0 rlock run --password-command "printf '$text'" a -- true
		assert_output ''
	done
	# More than a pipe holds.
	run -0 rlock run --password-command 'x=first; echo "$x-t0ken" | cat; head -c 300000 /dev/zero' a -- true
	assert_output ''
	run -0 rlock run -v --password-command "$COMMAND" a -- true
	assert_line "rlock: redis://127.0.0.1:$PORT/0: the password was fetched"
	refute_output --partial first-t0ken
	assert_equal "$(calls)" 1
}

@test "the command is in the configuration file, for the servers of that file" {
	printf '%s\n' "url = $RLOCK_URL" "password-command = $COMMAND" >conf
	run -77 rlock run --config conf a -- touch ran
	assert_output --partial ': the password-command in conf is for the url there, not for the one from RLOCK_URL'
	run -77 rlock run --config conf -u "$RLOCK_URL" a -- touch ran
	assert_equal "$(calls)" 0
	unset RLOCK_URL
	run -0 rlock run --config conf a -- true
	assert_equal "$(calls)" 1
	printf '%s\n' 'url = redis://ci@127.0.0.1:'"$PORT" 'password-command = false' >conf
	run -78 rlock run --config conf a -- touch ran
	assert_one_line "^rlock: a: no password for .*: password command ended with status 1: the password is from the password-command in conf$"
}

@test "the URL's password goes before the command, and the command before the environment's" {
	run -0 rlock run --password-command "$COMMAND" -u "redis://ci:first-t0ken@127.0.0.1:$PORT" a -- true
	assert_equal "$(calls)" 0
	REDISCLI_AUTH=wr0ng run -0 rlock run --password-command "$COMMAND" a -- true
	printf '%s\n' 'url = '"$RLOCK_URL" "password-file = $PWD/no-such-file" >conf
	run -0 env -u RLOCK_URL rlock run --config conf --password-command "$COMMAND" a -- true
}

# ---- no password ----

@test "a command that fails: 78, and why, in one line; what it says itself is shown" {
	local line reason
	while IFS='|' read -r line reason; do
		run -78 rlock run --password-command "$line" a -- touch ran
		assert_no_password "$reason"
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

@test "a command that hangs is killed with all that it has started when its time is over" {
	run -78 rlock run --connect-timeout 300ms \
		--password-command "exec 2>/dev/null; setsid sleep $NAP & sleep $NAP | cat" a -- touch ran
	assert_output --regexp '^rlock: a: no password for .* in time: the password is from --password-command$'
	wait_until 5 none_sleeps
}

# has_sleeps COUNT: so many of the password command's processes hang.
has_sleeps() {
	[ "$(pgrep -cf "^sleep $NAP")" = "$1" ]
}

@test "a signal ends a call whose password command hangs, and the command too" {
	in_background rlock run --connect-timeout 1m --password-command "exec sleep $NAP" a -- touch ran
	wait_until 5 has_sleeps 1
	kill "$PID"
	ended_with 143
	wait_until 5 none_sleeps
}

@test "SIGKILL of rlock leaves no password command" {
	in_background rlock run --connect-timeout 1m \
		--password-command "setsid sleep $NAP & sleep $NAP" a -- touch ran
	wait_until 5 has_sleeps 2
	kill -KILL "$PID"
	wait_until 5 none_sleeps
}

@test "a command that fails is tried again within a wait time, and not without" {
	write_script flaky 'echo call >>"$HERE/calls"' '[ "$(wc -l <"$HERE/calls")" -gt 2 ] || exit 1' 'cat "$HERE/token-now"'
	run -78 rlock run --password-command "$COMMAND" a -- touch ran
	assert_equal "$(calls)" 1
	run -0 rlock run -w 20s --password-command "$COMMAND" a -- true
	assert_equal "$(calls)" 3
	run -78 rlock run -w 300ms --password-command false a -- touch ran
	assert_no_password 'password command ended with status 1'
}

# ---- the command's surroundings ----

@test "the command gets the caller's environment, an empty input, no terminal and the directory /" {
	write_script look 'exec >"$HERE/seen"' 'pwd' 'cat || echo closed' 'echo "$MINE"' 'env | grep -c "^RLOCK_HELD="' \
		'ls /proc/self/fd | paste -sd " "' 'test -t 2 && echo terminal' \
		'sed -n "s/^Sig\(Blk\|Ign\):\t//p" /proc/self/status' ':'
	MINE=caller run -78 env RLOCK_HELD="$(printf 'redis:%%2F%%2Fh/plain/x/o:1/%032d/9' 0)" \
		rlock run --password-command "$COMMAND" a -- touch ran
	run -0 cat seen
	assert_line --index 0 /
	assert_line --index 1 caller
	assert_line --index 2 0
	# By the last one ls reads that: with standard input closed it would be the first.
	assert_line --index 3 '0 1 2 3'
	assert_line --index 4 "$(sed -n 's/^SigBlk:\t//p' /proc/self/status)"
	assert_line --index 5 "$(sed -n 's/^SigIgn:\t//p' /proc/self/status)"
	refute_line terminal
}

@test "the command of the holder does not find the password, nor a descriptor more; no zombie is left" {
	run -0 rlock run --password-command "$COMMAND" a -- sh -c 'env; ls -l /proc/self/fd'
	refute_output --partial first-t0ken
	refute_output --partial anon_inode
	in_background rlock run -t 3s --password-command "$COMMAND" a -- until_let_go
	wait_until 5 has_connections 1
	close_connections
	wait_until 5 has_calls 2
	wait_until 5 has_no_zombie "$PID"
	wait_until 5 has_no_zombie "$(renewer_of "$PID")"
	run -0 cat "/proc/$PID/"{cmdline,environ} "/proc/$(renewer_of "$PID")/"{cmdline,environ}
	refute_output --partial first-t0ken
	let_go
	ended_with 0
}

has_no_zombie() {
	[ -z "$(pgrep -P "$1" -r Z)" ]
}

# hanging_renewer [OPTION...]: holds the lock a by a connection that is cut; the password command of the next one hangs, with a
# process that has lost its parent, and both write down a SIGTERM. Sets PID.
hanging_renewer() {
	write_script hang 'trap "echo SIGTERM >>\"$HERE/signals\"" TERM' "sleep $NAP & wait; wait"
	write_script hanging 'echo call >>"$HERE/calls"' \
		'[ "$(wc -l <"$HERE/calls")" -eq 2 ] || exec cat "$HERE/token-now"' \
		'(setsid "$HERE/hang" &)' 'exec "$HERE/hang"'
	in_background rlock run -t 12s --connect-timeout 1m "$@" --password-command "$COMMAND" a -- \
		until_let_go
	wait_until 5 has_connections 1
	wait_until 5 is_above "$PID" until_let_go
	close_connections
	wait_until 30 has_calls 2
	wait_until 5 both_sleep
}

both_sleep() {
	[ "$(pgrep -cf "$NAP_COMMAND")" = 2 ]
}

@test "--wait-all does not wait for a password command" {
	hanging_renewer --wait-all
	let_go
	# The release has no password: it is given up after 5 s.
	ended_with 0
	wait_until 5 none_sleeps
	refute file_exists signals
}

@test "what terminates the command sends nothing to a password command" {
	hanging_renewer --grace 1s
	kill "$PID"
	ended_with 143
	wait_until 5 none_sleeps
	refute file_exists signals
}

@test "a renewer that is killed leaves no password command" {
	hanging_renewer
	kill -KILL "$(renewer_of "$PID")"
	wait_until 5 none_sleeps
	let_go
	ended_with 0
}
