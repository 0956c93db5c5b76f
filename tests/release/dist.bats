#!/usr/bin/env bats
# bats file_tags=computes
# `make dist`: the same bytes for the same commit, everything that is committed and no more, an SBOM that is true of it; and
# the archive can be built where there is no git.

load ../lib/usual
load ../lib/installing

# A commit of the tree as it is, and two clones of it, each with an archive.
setup_file() {
	export ARCHIVES=$BATS_FILE_TMPDIR/archives DATE='2026-01-02T03:04:05+0100'
	export GIT_CONFIG_GLOBAL=$BATS_FILE_TMPDIR/gitconfig GIT_CONFIG_SYSTEM=/dev/null
	start_server
	cd "$BATS_FILE_TMPDIR" || return
	printf '[user]\n\tname = A Tester\n\temail = tester@tests.invalid\n[init]\n\tdefaultBranch = main\n' >gitconfig
	mkdir source archives
	tar -C "$BATS_TEST_DIRNAME/../.." -c --exclude='./build*' --exclude=./.git . | tar -x -C source
	git -C source init -q
	git -C source add -A
	GIT_AUTHOR_DATE=$DATE GIT_COMMITTER_DATE=$DATE git -C source commit -q -m 'a release'
	VERSION=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' source/lib/rlock.h)
	export VERSION NAME=rlock-$VERSION
	git clone -q source one
	make_dist one "$ARCHIVES/one"
	# For a user with settings of its own, elsewhere and later; what was not committed is none of it.
	printf '[tar]\n\tumask = 0077\n[core]\n\tautocrlf = true\n' >>gitconfig
	mkdir -p another/place
	(
		umask 077
		git -c core.autocrlf=false clone -q source another/place/two
		echo changed >>another/place/two/README.md
		echo new >another/place/two/new
		TZ=Asia/Kathmandu LC_ALL=C make_dist another/place/two "$ARCHIVES/two"
	)
}

teardown() { common_teardown; }

# make_dist CLONE FOLDER: its archive, SBOM and checksums are in the folder.
make_dist() {
	run_make "$1" dist >/dev/null
	mv "$1/build/dist" "$2"
}

unpack() {
	tar -xzf "$ARCHIVES/one/$NAME.tar.gz"
}

# sbom EXPRESSION: prints what it is in Python, of the document `doc`, the `files` of its archive by their names, and its
# package `rlock`.
sbom() {
	python3 -IS - "$ARCHIVES/one/$NAME" "$1" <<-'END'
		import hashlib, json, os, re, sys, tarfile
		archive = sys.argv[1] + '.tar.gz'
		doc = json.load(open(sys.argv[1] + '.spdx.json'))
		tar = tarfile.open(archive)
		files = {m.name.split('/', 1)[1]: tar.extractfile(m).read() for m in tar if m.isfile()}
		rlock = next(p for p in doc['packages'] if p['name'] == 'rlock')
		def digest(algorithm, content):
		    return hashlib.new(algorithm.lower(), content).hexdigest()
		print(eval(f'({sys.argv[2]})'))
	END
}

@test "two clones of a commit give the same bytes, whatever the user has set and changed" {
	run -0 diff -r "$ARCHIVES/one" "$ARCHIVES/two"
	run -0 ls "$ARCHIVES/one"
	assert_output "SHA256SUMS
$NAME.spdx.json
$NAME.tar.gz"
}

@test "the archive has all files that are committed, as they are, and no others" {
	unpack
	git -C "$BATS_FILE_TMPDIR/source" ls-files | sort >committed
	(cd "$NAME" && find . -type f -printf '%P\n' -o ! -type d -printf 'neither file nor directory: %P\n') | sort >there
	assert [ "$(wc -l <there)" -gt 300 ]
	run -0 diff committed there
	run -0 diff -r --exclude=.git "$BATS_FILE_TMPDIR/source" "$NAME"
	run -0 tar -tf "$ARCHIVES/one/$NAME.tar.gz"
	refute_line --regexp "^(${NAME}$|[^r]|${NAME}[^/])"
}

@test "what is in the archive belongs to root, has the time of the commit, and modes that all may read" {
	tar -tvzf "$ARCHIVES/one/$NAME.tar.gz" --numeric-owner --full-time --utc | awk '{ print $1, $2, $4, $5 }' |
		sort -u >attributes
	run -0 cat attributes
	assert_output "-rw-r--r-- 0/0 2026-01-02 02:04:05
-rwxr-xr-x 0/0 2026-01-02 02:04:05
drwxr-xr-x 0/0 2026-01-02 02:04:05"
}

@test "the archive comes beside the static programs of its version, whose checksums are in the same list" {
	mkdir out
	touch "out/$NAME-linux-x86_64" out/rlock-0.0.1-linux-x86_64 out/rlock-0.0.1.tar.gz
	"$BATS_FILE_TMPDIR/source/packaging/dist.sh" "$PWD/out"
	run -0 ls out
	assert_output "SHA256SUMS
$NAME-linux-x86_64
$NAME.spdx.json
$NAME.tar.gz"
	cd out
	run -0 sha256sum --check --strict SHA256SUMS
	assert_output "$NAME-linux-x86_64: OK
$NAME.spdx.json: OK
$NAME.tar.gz: OK"
}

@test "the SBOM has the archive, its licence, and each of its files with its checksums" {
	run -0 sbom "rlock['versionInfo'], rlock['packageFileName'], rlock['licenseDeclared'], rlock['licenseConcluded']"
	assert_output "('$VERSION', '$NAME.tar.gz', 'MIT', 'MIT')"
	run -0 sbom "rlock['checksums'][0]['checksumValue'] == digest('SHA256', open(archive, 'rb').read())"
	assert_output True
	run -0 sbom "sorted(f['fileName'] for f in doc['files']) == sorted('./' + name for name in files)"
	assert_output True
	run -0 sbom "{(c['algorithm'], c['checksumValue'] == digest(c['algorithm'], files[f['fileName'][2:]]))
		for f in doc['files'] for c in f['checksums']} == {('SHA1', True), ('SHA256', True)}"
	assert_output True
	run -0 sbom "rlock['packageVerificationCode']['packageVerificationCodeValue'] ==
		digest('SHA1', ''.join(sorted(digest('SHA1', content) for content in files.values())).encode())"
	assert_output True
	run -0 sbom "sorted(f['SPDXID'] for f in doc['files']) == sorted(r['relatedSpdxElement'] for r in doc['relationships']
		if r['relationshipType'] == 'CONTAINS' and r['spdxElementId'] == rlock['SPDXID'])"
	assert_output True
}

@test "the SBOM says what rlock depends on, and how" {
	run -0 sbom "'\n'.join(' '.join((r['spdxElementId'], r['relationshipType'], r['relatedSpdxElement'])).replace('SPDXRef-', '')
		for r in doc['relationships'] if r['relationshipType'] != 'CONTAINS')"
	assert_output 'DOCUMENT DESCRIBES Package-rlock
Package-rlock DEPENDS_ON Package-hiredis
Package-rlock DEPENDS_ON Package-argtable2
Package-OpenSSL BUILD_DEPENDENCY_OF Package-rlock
Package-OpenSSL OPTIONAL_DEPENDENCY_OF Package-rlock'
	run -0 sbom "[p['licenseDeclared'] for p in doc['packages']]"
	assert_output "['MIT', 'BSD-3-Clause', 'LGPL-2.0-or-later', 'Apache-2.0']"
	# Of none of them a header would be included without it being listed.
	(cd "$BATS_FILE_TMPDIR/source" && cat lib/*.[ch] lib/*/*.[ch] cli/*.[ch] cli/*/*.[ch]) |
		sed -n 's/^#include <\(hiredis\|argtable2\|openssl\).*/\1/p' | sort -u >included
	assert_equal "$(tr '\n' ' ' <included)" 'argtable2 hiredis openssl '
}

@test "the archive is built and installed where there is no git, and what it installs works" {
	unpack
	mkdir bin
	printf '#!/bin/sh\necho "$*" >>%s/git-was-run\nexit 127\n' "$PWD" >bin/git
	chmod +x bin/git
	# Quickly: what a compiler makes better is not looked at.
	PATH=$PWD/bin:$PATH CFLAGS=-O0 CPPFLAGS='' LDFLAGS='' run_make "$NAME" -j "$(nproc)" install BUILD=build PREFIX=/usr \
		DESTDIR="$PWD/root" >log 2>&1 || fail "$(tail log)"
	run ! file_exists git-was-run
	run -0 root/usr/bin/rlock --version
	assert_line --partial "rlock $VERSION"
	run -0 root/usr/bin/rlock run name -- echo mine
	assert_output mine
	run -66 sh "$NAME/packaging/dist.sh" out
	assert_output --regexp 'is not the top of a git repository'
}
