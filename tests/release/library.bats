#!/usr/bin/env bats
# bats file_tags=computes
# librlock as users get it: `make install` into a directory, pkg-config, the exported symbols, and threads under a
# sanitizer. tests/bats/library.bats tests what the functions do.

load ../lib/usual
load ../lib/installing

setup_file() {
	local copy=$BATS_FILE_TMPDIR/build
	export PREFIX=$BATS_FILE_TMPDIR/prefix
	start_server_at_port
	copy_build "$copy"
	run_make "$TOP" BUILD="$copy" PREFIX="$PREFIX" DESTDIR= install
	export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
}

teardown() { common_teardown; }

# flags OPTION...: print the flags that pkg-config has for the library.
flags() {
	"${PKG_CONFIG:-pkg-config}" "$@" librlock
}

# use_lock FLAG...: compile a program in C and one in C++ with these flags. Check on the server that each acquires, renews and
# releases a lock.
use_lock() {
	local strict=(-Wall -Wextra -Wpedantic -Werror) program
	"${CC:-cc}" -std=c11 "${strict[@]}" -o lock "$TOP/tests/library/lock.c" "$@"
	"${CXX:-c++}" -std=c++17 "${strict[@]}" -o lock++ -x c++ "$TOP/tests/library/lock.c" -x none "$@"
	for program in lock lock++; do
		run -0 "./$program" "$RLOCK_URL" name 'ask_redis "$SERVER_SOCKET" pttl name'
		assert_output --regexp $'^acquired (2[5-9][0-9]{3}|30000)\nrenewed (5[5-9][0-9]{3}|60000)\nreleased -2$'
	done
	no_keys
}

@test "a program that pkg-config compiles uses the shared library, and with --static it has the archive in it" {
	# shellcheck disable=SC2046
	LD_LIBRARY_PATH=$PREFIX/lib use_lock $(flags --cflags --libs)
	run -0 readelf -d lock lock++
	assert_equal "$(grep -c 'NEEDED.*librlock.so.1' <<<"$output")" 2
	# Copy the archive to a directory of its own, so that the linker does not find the shared library, which it would prefer.
	mkdir archive
	cp "$PREFIX/lib/librlock.a" archive
	# shellcheck disable=SC2046
	use_lock $(flags --static --cflags --libs | sed "s|-L$PREFIX/lib |-L$PWD/archive |")
	run -0 readelf -d lock lock++
	refute_output --partial librlock
}

@test "make install copies files below DESTDIR, and no installed file names it" {
	run_make "$TOP" BUILD="$BATS_FILE_TMPDIR/build" DESTDIR="$PWD/root" PREFIX=/opt/rlock install
	run -0 cat root/opt/rlock/lib/pkgconfig/librlock.pc
	assert_output --partial /opt/rlock/lib
	run -1 grep -rlF "$PWD" root
	# With a sysroot pkg-config prints paths below DESTDIR.
	export PKG_CONFIG_PATH=$PWD/root/opt/rlock/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$PWD/root
	run -0 flags --libs
	assert_output --partial "-L$PWD/root/opt/rlock/lib"
}

@test "the library exports the functions of rlock.h, and packaging/debian/librlock1.symbols lists them, none of a later version" {
	local symbols=$TOP/packaging/debian/librlock1.symbols
	nm -D --defined-only "$PREFIX/lib/librlock.so" | awk '{ print $NF }' | sort >exported
	header_functions >declared
	assert [ "$(wc -l <declared)" -gt 30 ]
	run -0 diff <(sed -n 's/^ \([^@]*\)@Base .*/\1/p' "$symbols" | sort) exported
	run -0 diff declared exported
	run -0 readelf -d "$PREFIX/lib/librlock.so"
	[[ $output =~ SONAME.*\[(.*)\] ]]
	assert_equal "$(head -n 1 "$symbols")" "${BASH_REMATCH[1]} librlock1 #MINVER#"
	assert_equal "$({ flags --modversion; sed -n 's/^ .*@Base //p' "$symbols"; } | sort -Vu | tail -n 1)" "$(flags --modversion)"
}

@test "two threads with a connection each hold a lock alternately, and a thread sanitizer finds no race" {
	local sanitize='-O1 -g -fsanitize=thread' build=$BATS_FILE_TMPDIR/threads
	# shellcheck disable=SC2086
	echo 'int main(void) { return 0; }' | "${CC:-cc}" $sanitize -o can -x c - && ./can ||
		skip 'this compiler, or this machine, has no thread sanitizer'
	CFLAGS=$sanitize LDFLAGS='' run_make "$TOP" BUILD="$build" "$build/librlock.a" >/dev/null
	# shellcheck disable=SC2046,SC2086
	"${CC:-cc}" -std=c11 $sanitize -D_GNU_SOURCE -pthread -I "$TOP/lib" -o threads "$TOP/tests/library/threads.c" "$build/librlock.a" \
		$("${PKG_CONFIG:-pkg-config}" --libs hiredis) -ldl
	# Name the host: the library resolves host names in a thread of its own.
	run -0 env TSAN_OPTIONS=exitcode=66 ./threads "redis://localhost:$PORT" 100
	assert_output ''
	no_keys
}
