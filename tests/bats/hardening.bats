#!/usr/bin/env bats
# What security audits of a distribution check: how the binaries were built, which descriptors the program keeps, and which users
# it trusts in its runtime directory.

load ../lib/usual

teardown() {
	local pid
	# Read only a regular file: a test creates a fifo with this name, on which cat would block.
	if [ -f "$RLOCK_RUNTIME_DIR/local.pid" ]; then
		pid=$(cat "$RLOCK_RUNTIME_DIR/local.pid")
		[ "$(readlink "/proc/$pid/cwd")" != "$RLOCK_RUNTIME_DIR" ] || kill -KILL "$pid"
	fi
	teardown_and_check_processes
}

@test "program and library are hardened: PIE, stack protection, immediate binding, no RPATH" {
	local binary option has pattern
	[ -z "${TESTS_UNDER:-}" ] || skip "$TESTS_UNDER tests a program with other build flags"
	readelf -Wd "$RLOCK_BIN" | grep -E 'FLAGS_1.* PIE'
	for binary in "$RLOCK_BIN" "${RLOCK_BIN%/*}"/librlock.so.?; do
		while read -r option has pattern; do
			echo "$binary: $pattern" >&2
			run grep -cE -- "$pattern" <(readelf -W "$option" "$binary")
			[ "$has" = yes ] || assert_output 0
			[ "$has" = no ] || refute_output 0
		done <<-'END'
			-h yes Type: +DYN
			-d no TEXTREL
			-d yes FLAGS.* BIND_NOW
			-l yes ^ *GNU_RELRO
			-l yes ^ *GNU_STACK .* RW +0x
			-l no ^ *[A-Z_]+ .* RWE +0x
			-d no R(UN)?PATH
			--dyn-syms yes UND __stack_chk_fail
		END
		# Only glibc has fortified functions, and only an optimising compiler calls them.
		! readelf -WV "$RLOCK_BIN" | grep -q GLIBC || readelf -W --dyn-syms "$binary" | grep -E ' UND __v?snprintf_chk'
	done
}

@test "the renewer of a command keeps none of the caller's descriptors" {
	not_under_valgrind 'it has pipes of its own'
	in_background sh -c 'exec rlock run a -- run_until_ended 7<"$0" 8>mine | cat' "$BATS_TEST_FILENAME"
	wait_until 5 is_held a
	wait_until 5 keeps_none
}

# keeps_none: poll it, since until its exec the command's process is called rlock-renewer as well.
keeps_none() {
	run find "/proc/$(renewers)/fd" -type l -printf '%l\n'
	[[ $output = *socket:* && $output != *pipe:* && $output != *mine* && $output != *"$BATS_TEST_FILENAME"* ]]
}

# is_distrusted_when HOW: HOW, a line for the shell, makes the lock's hold file in $file untrustworthy. Then unlock must not find the lock by it.
is_distrusted_when() {
	run -0 timeout -k 1 20 bash -c '
		rlock lock --pid $$ a || exit 9
		file=$(echo "$RLOCK_RUNTIME_DIR"/hold-*)
		eval "$0"
		rlock renew a; [ $? = 1 ] || exit 10
		rlock unlock a; [ $? = 1 ] || exit 11
		rlock run -n b -- true || exit 12
		exit 0' "$1"
	wait_until 5 is_free a
	rm -rf "$RLOCK_RUNTIME_DIR"
}

@test "a hold file that is malformed or not the user's own is not trusted, and no call blocks on it" {
	is_distrusted_when 'mv "$file" elsewhere; ln -s "$PWD/elsewhere" "$file"'
	is_distrusted_when 'rm "$file"; mkfifo "$file"'
	is_distrusted_when 'rm "$file"; mkdir "$file"'
	is_distrusted_when 'head -c 600000 /dev/zero | tr "\0" "\n" >>"$file"'
	is_distrusted_when 'head -c 2000 /dev/urandom >"$file"'
	is_distrusted_when ': >"$file"'
	[ "$(id -u)" != 0 ] || is_distrusted_when 'chown 65534 "$file"'
}

@test "other files at the paths of the private server are replaced or refused, and no call blocks on them" {
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	mkfifo "$RLOCK_RUNTIME_DIR/local.pid"
	run -71 timeout -k 1 60 rlock run -u local: --connect-timeout 30s a -- echo ok
	assert_one_line '^rlock: local: cannot start '
	rm "$RLOCK_RUNTIME_DIR/local.pid"
	echo treasure >treasure
	ln -s "$PWD/treasure" "$RLOCK_RUNTIME_DIR/local.pid"
	run -71 timeout -k 1 60 rlock run -u local: --connect-timeout 30s a -- echo ok
	assert_one_line '^rlock: local: cannot lock '
	assert_equal "$(cat treasure)" treasure
	rm "$RLOCK_RUNTIME_DIR/local.pid"
	ln -s nowhere "$RLOCK_RUNTIME_DIR/local.sock"
	run -0 timeout -k 1 60 rlock run -u local: --connect-timeout 30s a -- echo ok
	assert_output ok
}

@test "another user's server at the private server's socket is refused" {
	[ "$(id -u)" = 0 ] || skip 'only root can run a server as another user'
	local other
	other=$(mktemp -d)
	chmod 755 "$other"
	chown 65534 "$other"
	in_background setpriv --reuid=65534 --regid=65534 --clear-groups redis-server --port 0 --save '' \
		--unixsocket "$other/sock" --unixsocketperm 777 --logfile /dev/null --dir "$other"
	# Poll, since redis-server creates the socket before it listens on it.
	wait_until 5 ask_redis "$other/sock" ping
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	ln -s "$other/sock" "$RLOCK_RUNTIME_DIR/local.sock"
	run -71 rlock run -u local: --connect-timeout 30s a -- true
	assert_one_line '^rlock: local: cannot connect to '
	# A renewer whose private server has ended must not connect to the other user's server, either.
	rm "$RLOCK_RUNTIME_DIR/local.sock"
	in_background rlock run -u local: --connect-timeout 30s -t 9s a -- sleep 60
	wait_until 10 has_child "$PID" sleep
	ln -sf "$other/sock" "$RLOCK_RUNTIME_DIR/local.sock"
	ask_redis "$other/sock" config resetstat
	kill -KILL "$(cat "$RLOCK_RUNTIME_DIR/local.pid")"
	ended_with 76
	run -0 ask_redis "$other/sock" info commandstats
	refute_output --regexp 'cmdstat_(client|hello|eval|evalsha|select):'
	rm -rf "$other"
}
