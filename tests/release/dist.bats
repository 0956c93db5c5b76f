#!/usr/bin/env bats
# bats file_tags=computes
# `make dist`: the archive has the same bytes for the same commit, and exactly the files of the commit. The SBOM describes it, and
# it can be built where git is not installed.

load ../lib/usual
load ../lib/installing

# Commit the tree as it is, and make an archive in each of two clones.
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
	run_make one dist >/dev/null
	mv one/build/dist archives/one
	# Make the second clone in another place, as a user with other settings, and with changes that are not committed.
	printf '[tar]\n\tumask = 0077\n[core]\n\tautocrlf = true\n' >>gitconfig
	mkdir -p another/place
	(
		umask 077
		git -c core.autocrlf=false clone -q source another/place/two
		echo changed >>another/place/two/README.md
		echo new >another/place/two/new
		TZ=Asia/Kathmandu LC_ALL=C run_make another/place/two dist >/dev/null
		mv another/place/two/build/dist archives/two
	)
}

teardown() { common_teardown; }

unpack() {
	tar -xzf "$ARCHIVES/one/$NAME.tar.gz"
}

@test "two clones of a commit give the same bytes, whatever the user has set and changed" {
	run -0 diff -r "$ARCHIVES/one" "$ARCHIVES/two"
	run -0 ls "$ARCHIVES/one"
	assert_output "$NAME.spdx.json"$'\n'"$NAME.tar.gz"
}

@test "the archive has exactly the committed files, of root, with the time of the commit and modes for all users" {
	unpack
	assert [ "$(git -C "$BATS_FILE_TMPDIR/source" ls-files | wc -l)" -gt 300 ]
	run -0 diff -r --exclude=.git "$BATS_FILE_TMPDIR/source" "$NAME"
	tar -tvzf "$ARCHIVES/one/$NAME.tar.gz" --numeric-owner --full-time --utc | awk '{ print $1, $2, $4, $5 }' |
		sort -u >attributes
	run -0 cat attributes
	assert_output "-rw-r--r-- 0/0 2026-01-02 02:04:05
-rwxr-xr-x 0/0 2026-01-02 02:04:05
drwxr-xr-x 0/0 2026-01-02 02:04:05"
}

@test "the SBOM has the archive, its licence, each of its files with its checksums, and what rlock depends on" {
	run -0 python3 -IS - "$ARCHIVES/one/$NAME" <<-'END'
		import hashlib, json, sys, tarfile
		archive = sys.argv[1] + '.tar.gz'
		doc = json.load(open(sys.argv[1] + '.spdx.json'))
		tar = tarfile.open(archive)
		files = {m.name.split('/', 1)[1]: tar.extractfile(m).read() for m in tar if m.isfile()}
		rlock = next(p for p in doc['packages'] if p['name'] == 'rlock')
		def digest(algorithm, content):
		    return hashlib.new(algorithm.lower(), content).hexdigest()
		def related(word):
		    return [(r['spdxElementId'], r['relatedSpdxElement']) for r in doc['relationships'] if word in r['relationshipType']]
		assert rlock['checksums'][0]['checksumValue'] == digest('SHA256', open(archive, 'rb').read())
		assert sorted(f['fileName'] for f in doc['files']) == sorted('./' + name for name in files)
		for f in doc['files']:
		    assert {c['algorithm'] for c in f['checksums']} == {'SHA1', 'SHA256'}
		    assert all(c['checksumValue'] == digest(c['algorithm'], files[f['fileName'][2:]]) for c in f['checksums'])
		assert rlock['packageVerificationCode']['packageVerificationCodeValue'] == digest(
		    'SHA1', ''.join(sorted(digest('SHA1', content) for content in files.values())).encode())
		assert sorted(related('CONTAINS')) == sorted((rlock['SPDXID'], f['SPDXID']) for f in doc['files'])
		print(rlock['versionInfo'], rlock['packageFileName'], *(p['licenseDeclared'] for p in doc['packages']))
		print(*(name.replace('SPDXRef-Package-', '') for pair in related('DEPEND') for name in pair))
	END
	assert_output "$VERSION $NAME.tar.gz MIT BSD-3-Clause LGPL-2.0-or-later Apache-2.0 LGPL-2.1-or-later
rlock hiredis rlock argtable2 OpenSSL rlock OpenSSL rlock rlock glibc"
}

@test "make installs from the archive without git, and the installed program works" {
	unpack
	mkdir bin
	printf '#!/bin/sh\necho "$*" >>%s/git-was-run\nexit 127\n' "$PWD" >bin/git
	chmod +x bin/git
	# Use -O0: it compiles faster, and this test does not need optimised code.
	PATH=$PWD/bin:$PATH CFLAGS=-O0 CPPFLAGS='' LDFLAGS='' run_make "$NAME" -j "$(nproc)" install BUILD=build PREFIX=/usr \
		DESTDIR="$PWD/root" >log 2>&1 || fail "$(tail log)"
	refute file_exists git-was-run
	run -0 root/usr/bin/rlock --version
	assert_line --partial "rlock $VERSION"
	run -0 root/usr/bin/rlock run name -- echo mine
	assert_output mine
	run -66 sh "$NAME/packaging/dist.sh" out
	assert_output --regexp 'is not the top of a git repository'
}
