#!/usr/bin/env bats
# bats file_tags=computes
# librlock as another program uses it: `make install` into a place of its own, pkg-config, the symbols that it exports, and
# what librlock(3) says of leases, of threads and of fork.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/installing
load ../lib/watching
load ../lib/proxying

TOP=$BATS_TEST_DIRNAME/../..
STRICT=(-Wall -Wextra -Wpedantic -Werror)

setup_file() {
	local copy=$BATS_FILE_TMPDIR/build
	export PREFIX=$BATS_FILE_TMPDIR/prefix
	start_server_at_port
	copy_build "$copy"
	run_make "$TOP" BUILD="$copy" PREFIX="$PREFIX" DESTDIR= install
	export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
}

teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() {
	common_teardown
}

# flags OPTION...: prints what pkg-config says of the library.
flags() {
	"${PKG_CONFIG:-pkg-config}" "$@" librlock
}

# compile_c OUT FILE [FLAG...]
compile_c() {
	"${CC:-cc}" -std=c11 "${STRICT[@]}" -o "$1" "$2" "${@:3}"
}

compile_cxx() {
	"${CXX:-c++}" -std=c++17 "${STRICT[@]}" -o "$1" "$2" "${@:3}"
}

# uses_lock PROGRAM: it acquires, renews and releases the lock, as the server sees it.
uses_lock() {
	run -0 "$1" "$RLOCK_URL" name 'ask_redis "$SERVER_SOCKET" pttl name'
	assert_output --regexp $'^acquired ([5-9][0-9]{3}|10000)\nrenewed (5[5-9][0-9]{3}|60000)\nreleased -2$'
	no_keys
}

# needs_library NAME FILE: the program is linked with it when it starts.
needs_library() {
	readelf -d "$2" | grep -qE "NEEDED.*\[$1"
}

# ---- pkg-config ----

@test "a program in C that pkg-config compiles uses the shared library" {
	# shellcheck disable=SC2046
	compile_c lock "$TOP/tests/library/lock.c" $(flags --cflags --libs)
	needs_library librlock.so.1 lock
	LD_LIBRARY_PATH=$PREFIX/lib uses_lock ./lock
}

@test "a program in C++ that pkg-config compiles uses the shared library" {
	# shellcheck disable=SC2046
	compile_cxx lock "$TOP/tests/library/lock.cpp" $(flags --cflags --libs)
	needs_library librlock.so.1 lock
	LD_LIBRARY_PATH=$PREFIX/lib uses_lock ./lock
}

# archive_flags: prints those of pkg-config --static, for a linker that finds no shared library of ours.
archive_flags() {
	mkdir -p archive
	cp "$PREFIX/lib/librlock.a" archive
	flags --static --cflags --libs | sed "s|-L$PREFIX/lib |-L$PWD/archive |"
}

@test "a program that pkg-config --static compiles has the archive in it" {
	local language
	# shellcheck disable=SC2046
	compile_c lock "$TOP/tests/library/lock.c" $(archive_flags)
	# shellcheck disable=SC2046
	compile_cxx lock++ "$TOP/tests/library/lock.cpp" $(archive_flags)
	for language in lock lock++; do
		run -1 needs_library librlock "$language"
		uses_lock "./$language"
	done
}

@test "DESTDIR is where files are copied to, and not a part of what they say" {
	run_make "$TOP" BUILD="$BATS_FILE_TMPDIR/build" DESTDIR="$PWD/root" PREFIX=/opt/rlock install
	run -0 cat root/opt/rlock/lib/pkgconfig/librlock.pc
	assert_output --partial /opt/rlock/lib
	run -1 grep -rlF "$PWD" root
	# A compiler for another root finds all of it there.
	export PKG_CONFIG_PATH=$PWD/root/opt/rlock/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$PWD/root
	run -0 flags --libs
	assert_output --partial "-L$PWD/root/opt/rlock/lib"
}

# ---- what it exports ----

# header_functions: prints those that rlock.h declares, sorted.
header_functions() {
	sed -n '/^RLOCK_API/,/;/p' "$TOP/lib/rlock.h" | tr '\n' ' ' | grep -o 'rlock_[a-z_]*(' | tr -d '(' | sort -u
}

@test "the library exports the symbols of packaging/debian/librlock1.symbols, which are the functions of rlock.h" {
	nm -D --defined-only "$PREFIX/lib/librlock.so" | awk '{ print $NF }' | sort >exported
	sed -n 's/^ \([^@]*\)@Base .*/\1/p' "$TOP/packaging/debian/librlock1.symbols" | sort >listed
	header_functions >declared
	assert [ "$(wc -l <declared)" -gt 30 ]
	run -0 diff listed exported
	run -0 diff declared exported
}

@test "the list of symbols is for the library's name, and no symbol in it is of a later version" {
	local soname version
	soname=$(readelf -d "$PREFIX/lib/librlock.so" | sed -n 's/.*SONAME.*\[\(.*\)\]$/\1/p')
	version=$(flags --modversion)
	run -0 sed -n 1p "$TOP/packaging/debian/librlock1.symbols"
	assert_output "$soname librlock1 #MINVER#"
	run -0 sh -c 'sed -n "s/^ .*@Base //p" "$1" | cat - "$2" | sort -Vu | tail -n 1' sh \
		"$TOP/packaging/debian/librlock1.symbols" <(echo "$version")
	assert_output "$version"
}

@test "the library has no variable that threads could share" {
	nm --format=sysv "$PREFIX/lib/librlock.a" | grep -E '[|]\.t?(data|bss)' >placed
	# Tables with addresses in them, which are read-only once the program has begun.
	run -1 grep -vF '|.data.rel.ro' placed
	assert_output ''
}

# ---- leases ----

@test "a lease is counted from before the request was sent, when it is acquired and when it is renewed" {
	# shellcheck disable=SC2046
	compile_c age "$TOP/tests/library/age.c" $(archive_flags)
	start_proxy
	proxy delay 400
	run -0 ./age "$RLOCK_URL" name
	assert_equal "${#lines[@]}" 2
	assert [ "${lines[0]}" -ge 400 ]
	assert [ "${lines[1]}" -ge 400 ]
	no_keys
}

# ---- requests to stop ----

@test "a holder finds a request to stop with its next renewal, and no hold that came later is asked" {
	local owner=7a0f3c1e-5f0c-4d6e-9a55-0d7f6c1b2a34:9
	# shellcheck disable=SC2046
	compile_c stop "$TOP/tests/library/stop.c" $(archive_flags)
	run -0 ./stop "$RLOCK_URL" name
	# Holds of one lock come in no order.
	assert_equal "$(sort <<<"$output")" "$(sort <<<"free: not_held, 0
renewed: none 99
another: not_held, 0
asked: ok, 2
$owner hears: asked
$owner is deaf: cannot be asked
renewed: me@here 0
renewed: none 99
again: ok, 1
$owner hears: asked
renewed: me@here 0
renewed: none 99
released: not_held, 0")"
	no_keys
}

# ---- threads ----

@test "two threads with a connection each take turns, and share no memory that a thread sanitizer would report" {
	local sanitize='-O1 -g -fsanitize=thread' build=$BATS_FILE_TMPDIR/threads
	# shellcheck disable=SC2086
	echo 'int main(void) { return 0; }' | "${CC:-cc}" $sanitize -o can -x c - && ./can ||
		skip 'this compiler, or this machine, has no thread sanitizer'
	CFLAGS=$sanitize LDFLAGS='' run_make "$TOP" BUILD="$build" "$build/librlock.a" >/dev/null
	# shellcheck disable=SC2046,SC2086
	compile_c threads "$TOP/tests/library/threads.c" $sanitize -D_GNU_SOURCE -pthread -I "$TOP/lib" "$build/librlock.a" \
		$("${PKG_CONFIG:-pkg-config}" --libs hiredis) -ldl
	# By a name, since the library looks names up in a thread.
	run -0 env TSAN_OPTIONS=exitcode=66 ./threads "redis://localhost:$PORT" 100
	assert_output '100 100'
	no_keys
}

# ---- events of the caller ----

@test "a timer that goes off all the time during a renewal or a release costs neither the request nor the connection" {
	# shellcheck disable=SC2046
	compile_c events "$TOP/tests/library/events.c" -D_GNU_SOURCE $(archive_flags)
	start_proxy
	run -0 ./events "$RLOCK_URL" hold \
		"faultproxy -c unix:$BATS_TEST_TMPDIR/control delay 300 && faultproxy -c unix:$BATS_TEST_TMPDIR/control refuse on"
	assert_output $'acquire: ok\nok\nok\nrenew: ok\nrenew: ok\nrenew: ok\nfind: ok\nrelease: ok'
	run -0 proxy count
	assert_output --regexp '^connections=1 '
	no_keys
}

@test "a renewal without a reply ends at its deadline, though a timer goes off all the time" {
	# shellcheck disable=SC2046
	compile_c events "$TOP/tests/library/events.c" -D_GNU_SOURCE $(archive_flags)
	start_proxy
	run -0 ./events "$RLOCK_URL" late "faultproxy -c unix:$BATS_TEST_TMPDIR/control blackhole on"
	assert_output $'ok\nrenew: enet\nsoon'
	redis flushall
}

@test "an event ends a wait, which leaves the queue, and others do not" {
	# shellcheck disable=SC2046
	compile_c events "$TOP/tests/library/events.c" -D_GNU_SOURCE $(archive_flags)
	hold_in_background a
	run -0 ./events "$RLOCK_URL" wait 'ask_redis "$SERVER_SOCKET" exists "rlock_queue:{a}"'
	assert_output $'acquire: cancelled\nenough events\n0'
	let_go
	wait_until 5 no_keys
}

# ---- take over ----

compile_take_over() {
	# shellcheck disable=SC2046
	compile_c take_over "$TOP/tests/library/take_over.c" -D_GNU_SOURCE $(archive_flags)
}

@test "a wait that goes on in another process, after the first was killed, has its position in the queue" {
	local kind
	compile_take_over
	# By then a script has removed the dead waiter: from the wake queue since it does not listen.
	local forget='ask_redis "$SERVER_SOCKET" lpop redisson_lock_queue:{a} && ask_redis "$SERVER_SOCKET" hdel rlock_waiters:{a} A:1'
	for kind in plain write sem; do
		run -0 ./take_over "$RLOCK_URL" order "$kind" true a b
		assert_output ABC
		run -0 ./take_over "$RLOCK_URL" order "$kind" true a
		assert_output ABC
		# A semaphore keeps its total.
		[ "$kind" = sem ] || no_keys
		redis flushall
	done
	run -0 ./take_over "$RLOCK_URL" order fair true a b
	assert_output ABC
	run -0 ./take_over "$RLOCK_URL" order fair "($forget) >/dev/null" a
	assert_output ABC
}

@test "a request whose reply was never read is granted to the same owner and hold id once, in another process" {
	local kind
	compile_take_over
	for kind in plain fair; do
		run -0 ./take_over "$RLOCK_URL" granted "$kind" a b
		assert_output $'1 1\n1 1'
		redis del 'redisson_lock_token:{a}' 'redisson_lock_token:{b}'
		no_keys
	done
	for kind in read write sem; do
		run -0 ./take_over "$RLOCK_URL" granted "$kind" a b
		assert_output $'1 0\n1 0'
		[ "$kind" = sem ] || no_keys
		redis flushall
	done
}

@test "a process leaves the queue, and releases what was granted, in the place of one that was killed" {
	local kind
	compile_take_over
	for kind in plain fair read write; do
		run -0 ./take_over "$RLOCK_URL" leave "$kind" a b
		assert_output not_held
		no_keys
	done
	run -0 ./take_over "$RLOCK_URL" leave sem a
	assert_output not_held
	run -0 redis exists "rlock_queue:{a}" "rlock_holds:{a}"
	assert_output 0
	redis flushall
}

@test "a wait that goes on in another process leaves the queue when it is cancelled before it has sent anything" {
	local kind
	compile_take_over
	for kind in plain fair write; do
		run -0 ./take_over "redis://127.0.0.1:$PORT" cancel "$kind" a b
		assert_output cancelled
		no_keys
	done
}

@test "a new owner that the caller gives re-enters what it has inherited" {
	compile_take_over
	run -0 ./take_over "$RLOCK_URL" owner plain a
	assert_output 'A:1 2'
	run -0 ./take_over "$RLOCK_URL" owner read a
	assert_output 'A:1 2'
	no_keys
}

# ---- fork ----

@test "a child that calls rlock_conn_after_fork_child uses its connection beside its parent, and both renew the hold" {
	# shellcheck disable=SC2046
	compile_c fork "$TOP/tests/library/fork.c" -D_GNU_SOURCE $(archive_flags)
	run -0 ./fork "$RLOCK_URL"
	# The child opens a connection of its own, once; the parent goes on with the one that it had.
	assert_equal "$(grep -c '^child: connected' <<<"$output")" 1
	refute_line --regexp '^parent: connect'
	no_keys
}
