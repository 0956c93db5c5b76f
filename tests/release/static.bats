#!/usr/bin/env bats
# bats file_tags=computes
# `make static`: the program needs no library, reaches servers in each way that the dynamic program does, and runs in a root
# directory with no other file. Its name in a release, and its wheel. `make check-packages` tests the program of another
# architecture.

load ../lib/usual
load ../lib/certificates
load ../lib/installing

setup_file() {
	export CERTIFICATES=$BATS_FILE_TMPDIR/certificates STATIC=$BATS_FILE_TMPDIR/build/static TLS_PORT CLEAR_PORT
	# Test for the archives of the libraries as tools/deps.sh does.
	# shellcheck disable=SC2046
	echo 'int main(void) { return 0; }' | "${CC:-cc}" -static-pie -fPIE -o "$BATS_FILE_TMPDIR/probe" -x c - -x none \
		-lhiredis -largtable2 $("${PKG_CONFIG:-pkg-config}" --static --libs libssl) -lm 2>/dev/null ||
		skip 'there are no archives of the libraries here'
	create_certificates "$CERTIFICATES"
	choose_port && CLEAR_PORT=$PORT
	start_tls_server server --port "$CLEAR_PORT" --bind 127.0.0.1
	TLS_PORT=$PORT
	# Use -O0, which compiles faster.
	CFLAGS=-O0 CPPFLAGS='' LDFLAGS='' run_make "$TOP" -j "$(nproc)" BUILD="$BATS_FILE_TMPDIR/build" static \
		>"$BATS_FILE_TMPDIR/log" 2>&1 ||
		fail "$(cat "$BATS_FILE_TMPDIR/log")"
}

setup() {
	directory_setup
	export RLOCK_URL=unix://$SERVER_SOCKET
	PATH=$STATIC:$PATH
}

teardown() { common_teardown; }

# has SECTIONS REGEXP: whether a line that readelf prints with the option SECTIONS matches.
has() {
	readelf -W "$1" "$STATIC/rlock" | grep -E -- "$2"
}

# acquires URL [OPTION...]: check that a command runs with a lock on that server, and that rlock exits with the command's status.
acquires() {
	run -7 rlock run -u "$1" "${@:2}" name -- sh -c 'echo "$RLOCK_NAME"; exit 7'
	assert_output name
}

@test "the static program needs no library and no loader, and is hardened like the dynamic one" {
	has -h 'Type: +DYN '
	run ! has -l INTERP
	run ! has -d 'NEEDED|TEXTREL'
	has -l '^ *GNU_RELRO '
	has -d '(FLAGS.* (BIND_)?NOW|BIND_NOW)'
	has -l '^ *GNU_STACK .* RW +0x'
	run ! has -l '^ *[A-Z_]+ .* RWE +0x'
	has -s ' __stack_chk_fail$'
	# Leave out the rest without glibc: other C libraries have no such functions, and their build prints no note.
	grep -q glibc "$BATS_FILE_TMPDIR/log" || return 0
	has -s ' __(snprintf|vsnprintf)_chk$'
	! "${CC:-cc}" -Wl,--help 2>/dev/null | grep -q -e '-z pack-relative-relocs' || has -d '\(RELRSZ\)'
	run -0 grep -vE '^  [A-Z]+ +[^ ]+$|^deps: nothing is missing' "$BATS_FILE_TMPDIR/log"
	assert_output 'static: host names come from /etc/hosts and DNS; another service of nsswitch.conf needs the glibc of this machine'
}

# release_program: print the path of the program that is published.
release_program() {
	echo "$BATS_FILE_TMPDIR/build/dist/rlock-$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' "$TOP/lib/rlock.h")-linux-$(uname -m)"
}

@test "the program of a release is named by version and architecture, and has no path of the build" {
	local program
	program=$(release_program)
	run -7 "$program" run name -- sh -c 'exit 7'
	run ! grep -aF "$BATS_FILE_TMPDIR" "$program"
	run -0 readelf -n "$program"
	refute_output --partial 'Build ID'
}

# has_notice LIBRARY TEXT...: check that the section of LIBRARY in the notices names its version, and has each TEXT.
has_notice() {
	local section text
	section=$(awk -v name="$1=" '/^--------------------/ { getline; here = index($0, name) == 1 } here' "$(release_program).notices")
	[ -n "$section" ] || fail "there is no section for $1"
	for text in "${@:2}"; do
		grep -qF -- "$text" <<<"$section" || fail "the section for $1 lacks '$text'"
	done
}

@test "the notices of the static program have the licence of each library in it, and say how to replace a library" {
	local notices text
	notices=$(release_program).notices
	has_notice hiredis 'Salvatore Sanfilippo' 'THIS SOFTWARE IS PROVIDED BY'
	has_notice openssl 'The OpenSSL Project Authors' 'Apache'
	has_notice argtable2 'Stewart Heitmann' 'Library General Public License'
	has_notice glibc 'Free Software Foundation' 'Regents of the University of California'
	# The notices refer to these texts, which are on each Debian, but not on each machine with the program.
	for text in Apache-2.0 LGPL-2 LGPL-2.1; do
		run -0 grep -cF "$(sed -n '/^ *[0-9]*\. /{p;q}' "/usr/share/common-licenses/$text")" "$notices"
	done
	run -0 cat "$notices"
	assert_output --partial "$(cat "$TOP/LICENSE")"
	assert_output --partial "run 'make static'"
	assert_output --partial "apt-get source NAME=VERSION"
	refute_output --partial "$BATS_FILE_TMPDIR"
}

@test "no notices are written for a program with a library of unknown licence, and no wheel is made of it" {
	local map=$STATIC/rlock.map
	sed "s|^/.*libargtable2|$PWD/libargtable2|" "$map" >changed
	touch libargtable2.a
	run -66 "$TOP/packaging/notices.sh" changed
	assert_output "notices.sh: no package of Debian has '$PWD/libargtable2.a', so its licence is not known"
	cp "$(release_program)" .
	SOURCE_DATE_EPOCH=1000000000 run -1 "$TOP/packaging/wheel.py" rlock-*-linux-*
	assert_output --regexp "^wheel.py: cannot read 'rlock-.*\.notices': No such file or directory$"
}

@test "pip installs the wheel offline into a fresh environment, its program runs a command with a private lock, and pip removes it" {
	local program
	program=$(basename "$(release_program)")
	cp "$(release_program)" "$(release_program).notices" .
	SOURCE_DATE_EPOCH=1000000000 run -0 "$TOP/packaging/wheel.py" "$PWD/$program"
	mkdir again
	cp -p rlock-*-linux-* again
	SOURCE_DATE_EPOCH=1000000000 run -0 "$TOP/packaging/wheel.py" "again/$program"
	run -0 cmp rlock-*.whl again/rlock-*.whl
	run -0 env -u PYTHONPATH python3 -m venv venv
	run -0 venv/bin/pip install --no-index rlock-*-py3-none-manylinux2014_"$(uname -m)".*.whl
	run -0 cmp venv/bin/rlock "$program"
	run -0 find venv -path '*/rlock-*.dist-info/licenses/*' -printf '%f\n'
	assert_equal "$(sort <<<"$output")" $'LICENSE\nNOTICES'
	run -0 grep -h '^License-Expression:' venv/lib/*/site-packages/rlock-*.dist-info/METADATA
	assert_output --regexp '^License-Expression: MIT AND Apache-2.0 AND BSD-3-Clause AND LGPL-2.0-or-later AND LGPL-2.1-or-later( AND Zlib)?$'
	run -0 cmp venv/lib/*/site-packages/rlock-*.dist-info/licenses/NOTICES "$program.notices"
	run -7 venv/bin/rlock run -u local: name -- sh -c 'exit 7'
	kill "$(<"$RLOCK_RUNTIME_DIR/local.pid")"
	# pip compares the files with the record of the wheel.
	run -0 venv/bin/pip show --files rlock
	assert_line --regexp "^Version: $(venv/bin/rlock --version | sed -n '1s/rlock \([0-9.]*\).*/\1/p')$"
	assert_line --regexp '/bin/rlock$'
	run -0 venv/bin/pip uninstall -y rlock
	assert [ ! -e venv/bin/rlock ]
}

@test "the static program acquires locks by each way to a server, and refuses a certificate that it does not trust" {
	acquires "unix://$SERVER_SOCKET"
	acquires "redis://127.0.0.1:$CLEAR_PORT"
	acquires "redis://localhost:$CLEAR_PORT"
	acquires "rediss://localhost:$TLS_PORT" --cacert "$CERTIFICATES/ca.crt"
	SSL_CERT_FILE=$CERTIFICATES/ca.crt acquires "rediss://localhost:$TLS_PORT"
	run -78 rlock run -u "rediss://localhost:$TLS_PORT" --cacert "$CERTIFICATES/stranger.crt" name -- true
	assert_output --partial 'is not trusted'
	acquires local:
	kill "$(<"$RLOCK_RUNTIME_DIR/local.pid")"
}

# in_root ARG...: run rlock with these arguments in a root directory without other files.
in_root() {
	env -u RLOCK_RUNTIME_DIR chroot root /rlock "$@"
}

@test "the static program runs in a root directory without other files" {
	[ "$(id -u)" = 0 ] || skip 'only root can change its root directory'
	mkdir root
	cp "$STATIC/rlock" root
	ln "$SERVER_SOCKET" root/redis.sock
	run -0 chroot root /rlock --version
	assert_output --regexp '^rlock [0-9.]+ \(hiredis [0-9.]+, with TLS\)'
	# A command needs a /proc; a lock of --owner needs nothing.
	run -71 in_root run -u unix:///redis.sock name -- /rlock --version
	for server in unix:///redis.sock "redis://127.0.0.1:$CLEAR_PORT"; do
		run -0 in_root lock --owner me --lease 10s -u "$server" name
		run -0 in_root status -u "$server" name
		assert_output --regexp '^name[: ]'
		run -0 in_root unlock --owner me -u "$server" name
	done
	no_keys
}
