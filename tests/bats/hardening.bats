#!/usr/bin/env bats
# What a distribution that minds security looks for: how the program was built, which descriptors it hands on,
# which users it trusts in its runtime directory, and where a password is not to be seen.

load ../lib/usual
load ../lib/rights

setup_file() { start_server_at_port; }

setup() {
	directory_setup
	redis acl setuser ci on ">$SECRET" allkeys allchannels +@all >/dev/null
	TCP_URL=$(url_of ci)
}

teardown() {
	kill -CONT "$SERVER_PID" 2>/dev/null || :
	REDISCLI_AUTH=$SECRET redis config set requirepass '' >/dev/null 2>&1
	end_private_server
	watchful_teardown
}

end_private_server() {
	local pid
	[ -f "$RLOCK_RUNTIME_DIR/local.pid" ] || return 0 # a test puts a fifo there
	pid=$(cat "$RLOCK_RUNTIME_DIR/local.pid")
	[ "$(readlink "/proc/$pid/cwd")" != "$RLOCK_RUNTIME_DIR" ] || kill -KILL "$pid"
}

# ---- how it was built ----

# each_binary COMMAND [ARG...]: for what is installed and run or linked, when it is neither instrumented nor
# wrapped.
each_binary() {
	local binary
	[ -z "${TESTS_UNDER:-}" ] || skip "$TESTS_UNDER has flags of its own"
	for binary in "$RLOCK_BIN" "${RLOCK_BIN%/*}"/librlock.so.?; do
		assert file_exists "$binary"
		"$@" "$binary" || fail "not so for $binary: $*"
	done
}

# has SECTIONS REGEXP FILE
has() {
	readelf -W "$1" "$3" 2>/dev/null | grep -E -- "$2"
}

has_not() {
	! has "$@"
}

# calls REGEXP FILE: functions of the C library
calls() {
	nm -D --undefined-only "$2" | grep -E " U ($1)(@|$)"
}

@test "program and library are independent of their place in memory, and their tables of functions are bound at the start" {
	each_binary has -h 'Type: +DYN '
	has -d 'FLAGS_1.* PIE' "$RLOCK_BIN"
	each_binary has_not -d TEXTREL
	each_binary has -d 'FLAGS.* BIND_NOW'
	each_binary has -l '^ *GNU_RELRO '
	# Their stacks cannot be executed, and nothing can be both written and executed.
	each_binary has -l '^ *GNU_STACK .* RW +0x'
	each_binary has_not -l '^ *[A-Z_]+ .* RWE +0x'
	# Libraries are looked for where the system has them.
	each_binary has_not -d 'R(UN)?PATH'
}

@test "program and library guard their stack, and the C library's functions that fill memory" {
	each_binary calls __stack_chk_fail
	# No C library but one has them, and no compiler without -O.
	has -V GLIBC "$RLOCK_BIN" >/dev/null || skip 'this C library has no such functions'
	each_binary calls '__(snprintf|vsnprintf)_chk'
	# Of what was allocated: only the highest level knows its size.
	if cc_knows_level_3; then
		each_binary calls '__(memcpy|mempcpy|explicit_bzero)_chk'
	fi
}

cc_knows_level_3() {
	"${CC:-cc}" -Werror -O2 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3 -include stdlib.h -S -o /dev/null -x c /dev/null
}

# ---- descriptors ----

has_listener() {
	[ -n "$(redis pubsub channels)" ]
}

# closes_at_exec FDINFO
closes_at_exec() {
	local flags
	flags=$(sed -n 's/^flags:[[:space:]]*//p' "$1" 2>/dev/null) || return 0
	[ -z "$flags" ] || ((flags & 02000000))
}

@test "every descriptor that rlock opens is closed by any exec, while it renews and while it waits" {
	local holder waiter info pid
	in_background rlock run -t 1s -u "$TCP_URL $TCP_URL/2" name -- until_let_go
	holder=$PID
	wait_until 5 is_held name
	wait_until 5 has_renewer "$holder"
	in_background rlock wlock -t 1s -u "$TCP_URL" name2 -- until_let_go
	wait_until 5 is_held name2
	in_background rlock fair -u "$TCP_URL" name -- true
	waiter=$PID
	wait_until 5 has_listener
	for pid in "$holder" "$waiter" "$(renewer_of "$holder")" "$(renewer_of "$waiter")"; do
		for info in "/proc/$pid/fdinfo"/*; do
			# The streams that the caller gave it, or that stand for them.
			[ "${info##*/}" -gt 2 ] || continue
			is_the_callers "$pid" "${info##*/}" || closes_at_exec "$info" ||
				fail "descriptor ${info##*/} of $pid: $(readlink "/proc/$pid/fd/${info##*/}")"
		done
	done
	kill "$waiter"
	let_go
}

# is_the_callers PID FD: this test has it too.
is_the_callers() {
	[ "$(readlink "/proc/$1/fd/$2")" = "$(readlink "/proc/$$/fd/$2")" ]
}

@test "the renewer of a command keeps none of the caller's descriptors" {
	not_under_valgrind 'it has pipes of its own'
	local renewer
	in_background sh -c 'exec rlock run -t 1s name -- until_let_go 7<"$0" 8>mine' "$BATS_TEST_FILENAME"
	wait_until 5 is_held name
	wait_until 5 has_renewer "$PID"
	renewer=$(renewer_of "$PID")
	wait_until 5 has_no_streams "$renewer"
	run -0 find "/proc/$renewer/fd" -type l -printf '%l\n'
	refute_output --partial "$BATS_TEST_FILENAME"
	refute_output --partial mine
	refute_output --partial pipe:
	let_go
	wait "$PID"
}

# has_no_streams PID: in the place of each is what can be neither read nor written, or nothing.
has_no_streams() {
	local fd stream
	for fd in 0 1 2; do
		stream=$(readlink "/proc/$1/fd/$fd") || continue
		[ "$stream" = / ] || return
	done
}

# ---- the runtime directory ----

# doubtful HOW: a lock's hold file is made so that it is not to be trusted, by the line HOW for the shell, which
# finds it in $file: then no process has the lock by it.
doubtful() {
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

@test "a hold file that is none, or not the user's own, is not trusted, and no call waits for it" {
	doubtful 'mv "$file" elsewhere; ln -s "$PWD/elsewhere" "$file"'
	doubtful 'rm "$file"; mkfifo "$file"'
	doubtful 'rm "$file"; mkdir "$file"'
	doubtful 'head -c 600000 /dev/zero | tr "\0" "\n" >>"$file"'
	doubtful 'head -c 2000 /dev/urandom >"$file"'
	doubtful ': >"$file"'
	[ "$(id -u)" != 0 ] || doubtful 'chown 65534 "$file"'
}

@test "what stands in the way of the private server's files is replaced or refused, and no call waits for it" {
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	mkfifo "$RLOCK_RUNTIME_DIR/local.pid"
	run -71 timeout -k 1 20 rlock run -u local: a -- echo ok
	assert_one_line '^rlock: local: cannot start '
	rm "$RLOCK_RUNTIME_DIR/local.pid"
	echo treasure >treasure
	ln -s "$PWD/treasure" "$RLOCK_RUNTIME_DIR/local.pid"
	run -71 timeout -k 1 20 rlock run -u local: a -- echo ok
	assert_one_line '^rlock: local: cannot lock '
	assert_equal "$(cat treasure)" treasure
	rm "$RLOCK_RUNTIME_DIR/local.pid"
	ln -s nowhere "$RLOCK_RUNTIME_DIR/local.sock"
	run -0 timeout -k 1 20 rlock run -u local: a -- echo ok
	assert_output ok
}

@test "another user's server in the place of the private one is refused" {
	[ "$(id -u)" = 0 ] || skip 'only root can run a server as another user'
	local other
	other=$(mktemp -d)
	chmod 755 "$other"
	chown 65534 "$other"
	in_background setpriv --reuid=65534 --regid=65534 --clear-groups redis-server --port 0 --save '' \
		--unixsocket "$other/sock" --unixsocketperm 777 --logfile /dev/null --dir "$other"
	# The socket is there before anything listens on it.
	wait_until 5 ask_redis "$other/sock" ping
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	ln -s "$other/sock" "$RLOCK_RUNTIME_DIR/local.sock"
	run -71 rlock run -u local: a -- true
	rm -rf "$other"
	assert_one_line '^rlock: local: cannot connect to '
}

# ---- passwords ----

@test "neither REDISCLI_AUTH nor a password file is told of by what rlock says, sends or leaves" {
	echo "$SECRET" >password
	chmod 600 password
	redis config set requirepass "$SECRET" >/dev/null
	export REDISCLI_AUTH=$SECRET
	{
		rlock lock -v --pid $$ a
		env -u REDISCLI_AUTH rlock run -v --password-file password b -- \
			sh -c 'env; REDISCLI_AUTH=$(cat password) ask_redis "$SERVER_SOCKET" client list'
		redis client list
		redis hvals 'rlock_holds:{a}'
		cat "$RLOCK_RUNTIME_DIR"/hold-*
		rlock unlock -v --pid $$ a
	} >said 2>&1
	assert [ "$(wc -l <said)" -gt 20 ]
	run -1 grep -F "$SECRET" said
}
