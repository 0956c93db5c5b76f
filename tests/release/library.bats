#!/usr/bin/env bats
# bats file_tags=computes
# librlock as it is installed: `make install` into a place of its own, pkg-config, the symbols that it exports, and threads under a
# sanitizer. What it does is tested by tests/bats/library.bats.

load ../lib/usual
load ../lib/installing

STRICT=(-Wall -Wextra -Wpedantic -Werror)

setup_file() {
	local copy=$BATS_FILE_TMPDIR/build
	export PREFIX=$BATS_FILE_TMPDIR/prefix
	start_server_at_port
	copy_build "$copy"
	run_make "$TOP" BUILD="$copy" PREFIX="$PREFIX" DESTDIR= install
	export PKG_CONFIG_PATH=$PREFIX/lib/pkgconfig
}

teardown() { common_teardown; }

# flags OPTION...: prints what pkg-config says of the library.
flags() {
	"${PKG_CONFIG:-pkg-config}" "$@" librlock
}

# compile_c OUT FILE [FLAG...]
compile_c() {
	"${CC:-cc}" -std=c11 "${STRICT[@]}" -o "$1" "$2" "${@:3}"
}

compile_cxx() {
	"${CXX:-c++}" -std=c++17 "${STRICT[@]}" -o "$1" -x c++ "$2" -x none "${@:3}"
}

# uses_lock PROGRAM: it acquires, renews and releases the lock, as the server sees it.
uses_lock() {
	run -0 "$1" "$RLOCK_URL" name 'ask_redis "$SERVER_SOCKET" pttl name'
	assert_output --regexp $'^acquired (2[5-9][0-9]{3}|30000)\nrenewed (5[5-9][0-9]{3}|60000)\nreleased -2$'
	no_keys
}

# needs_library NAME FILE: the program is linked with it when it starts.
needs_library() {
	readelf -d "$2" | grep -qE "NEEDED.*\[$1"
}

# ---- pkg-config ----

@test "a program in C, and one in C++, that pkg-config compiles uses the shared library" {
	local language
	# shellcheck disable=SC2046
	compile_c lock "$TOP/tests/library/lock.c" $(flags --cflags --libs)
	# shellcheck disable=SC2046
	compile_cxx lock++ "$TOP/tests/library/lock.c" $(flags --cflags --libs)
	for language in lock lock++; do
		needs_library librlock.so.1 "$language"
		LD_LIBRARY_PATH=$PREFIX/lib uses_lock "./$language"
	done
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
	compile_cxx lock++ "$TOP/tests/library/lock.c" $(archive_flags)
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
	# Tables with addresses in them, which are read-only once the program has begun; and OpenSSL's functions, under a mutex.
	run -1 grep -vE '[|].data.rel.ro|^(openssl|(is_loaded|mutex)[.][0-9]+) ' placed
	assert_output ''
}

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
	assert_output ''
	no_keys
}
