#!/usr/bin/env bats
# bats file_tags=computes
# rpmbuild builds the packages of packaging/rpm/rlock.spec from an archive of this tree, and rpm installs them below a directory.
# --nodeps: on Debian the database of rpm does not list the libraries that the packages need.

load ../lib/helpers
load ../lib/installing

setup_file() {
	local top=$BATS_FILE_TMPDIR/rpm
	export PACKAGES=$top/RPMS ROOT=$BATS_FILE_TMPDIR/root
	start_server
	cd "$BATS_TEST_DIRNAME/../.." || return
	mkdir -p "$top/SOURCES" "$ROOT"
	local version
	version=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
	tar -czf "$top/SOURCES/rlock-$version.tar.gz" --exclude='./build*' --exclude=./.git --transform "s,^[.],rlock-$version," .
	# Define _tmpfilesdir, a macro that Debian lacks. -O0 compiles faster.
	rpmbuild --nodeps --define "_topdir $top" --define '_tmpfilesdir %{_prefix}/lib/tmpfiles.d' \
		--define 'set_build_flags CFLAGS=-O0; export CFLAGS' --define 'debug_package %{nil}' -bb packaging/rpm/rlock.spec >"$BATS_FILE_TMPDIR/log" 2>&1 || fail "$(tail -n 20 "$BATS_FILE_TMPDIR/log")"
	rpm --root "$ROOT" --initdb
	rpm --root "$ROOT" --nodeps --install "$PACKAGES"/*/*.rpm >>"$BATS_FILE_TMPDIR/log" 2>&1 ||
		fail "$(tail -n 20 "$BATS_FILE_TMPDIR/log")"
}

teardown_file() { stop_server; }
setup() { common_setup; }
teardown() { common_teardown; }

# query PACKAGE OPTION...: print what rpm knows about the package.
query() {
	rpm -qp "${@:2}" "$PACKAGES"/*/"$1"-[0-9]*.rpm
}

@test "rpmbuild makes packages of the program, the library and its header, with their files and requirements" {
	run -0 query rlock --list
	assert_line /usr/bin/rlock
	assert_line --regexp '^/usr/share/man/man1/rlock\.1'
	assert_line /usr/share/doc/rlock/examples/crontab
	refute_line --partial librlock.so
	run -0 query librlock --list
	assert_line --regexp '^/usr/lib(64)?/librlock\.so\.1$'
	refute_line --regexp 'include|librlock\.so$'
	run -0 query librlock-devel --list
	assert_line /usr/include/rlock.h
	assert_line --regexp '^/usr/lib(64)?/librlock\.so$'
	refute_line --partial librlock.a
	run -0 query rlock --requires
	assert_line --regexp '^libhiredis\.so'
	assert_line --regexp '^libargtable2\.so'
	run -0 query librlock --provides
	assert_line --regexp '^librlock\.so\.1'
	run -0 query librlock-devel --requires
	assert_line --regexp '^librlock.* = '
	run -0 query librlock --queryformat '%{LICENSE}'
	assert_output MIT
}

@test "the installed program and a program with the installed library acquire locks" {
	run -0 "$ROOT/usr/bin/rlock" run name -- echo mine
	assert_output mine
	local libraries
	libraries=$(dirname "$ROOT"/usr/lib*/librlock.so)
	"${CC:-cc}" -I "$ROOT/usr/include" -o "$BATS_TEST_TMPDIR/lock" "$BATS_TEST_DIRNAME/../library/lock.c" -L "$libraries" -lrlock
	LD_LIBRARY_PATH=$libraries run -0 "$BATS_TEST_TMPDIR/lock" "$RLOCK_URL" name true
	assert_output 'acquired renewed released '
	no_keys
}
