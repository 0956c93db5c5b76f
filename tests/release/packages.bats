#!/usr/bin/env bats
# The files for packages agree with the tree about the version, and about the files that `make install` installs.
# `make check-packages` and rpm.bats build packages.

load ../lib/helpers
load ../lib/installing

TOP=$BATS_TEST_DIRNAME/../..

setup_file() {
	export INSTALLED=$BATS_FILE_TMPDIR/installed
	copy_build "$BATS_FILE_TMPDIR/build"
	run_make "$TOP" BUILD="$BATS_FILE_TMPDIR/build" PREFIX=/usr DESTDIR="$INSTALLED" install
}

setup() {
	cd "$BATS_TEST_TMPDIR" || return
	VERSION=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' "$TOP/lib/rlock.h")
}

# files DIRECTORY: print the names of the files in it, as if DIRECTORY were the root directory.
files() {
	(cd "$1" && find . ! -type d -printf '/%P\n' | sort)
}

# in_apkbuild COMMAND...: run COMMAND in a shell that has read APKBUILD, as abuild does.
in_apkbuild() {
	sh -c '. "$0" && "$@"' "$TOP/packaging/alpine/APKBUILD" "$@"
}

@test "all files that name the version and the date of the release agree, and none is older than the first release" {
	run -0 "$TOP/packaging/versions.sh" "v$VERSION"
	assert_output ''
	run ! grep -F '@Base 0.' "$TOP/packaging/debian/librlock1.symbols"
}

@test "a tag, a version or a date that differs from the others ends with 78, and is named" {
	local file change
	run -78 "$TOP/packaging/versions.sh" v0.9
	assert_output "versions.sh: the tag has 'v0.9', which should be 'v$VERSION'"
	while read -r file change; do
		rm -rf tree
		mkdir tree
		(cd "$TOP" && cp -a --parents lib/rlock.h CHANGELOG.md packaging "$OLDPWD/tree")
		find "tree/$file" -type f -exec sed -i "$change" {} +
		run -78 tree/packaging/versions.sh
		assert_line --partial "versions.sh: $file has "
	done <<-END
		CHANGELOG.md s/^## $VERSION/## 9.9/
		CHANGELOG.md s/^## $VERSION - .*/## $VERSION - unreleased/
		packaging/debian/changelog s/^rlock ($VERSION/rlock (9.9/
		packaging/debian/changelog s/Nov 20/Dec 20/
		packaging/rpm/rlock.spec s/^Version: .*/Version: 9.9/
		packaging/rpm/rlock.spec s/ - $VERSION-/ - 9.9-/
		packaging/recipes s/rlock-$VERSION-linux/rlock-9.9-linux/
		packaging/alpine/APKBUILD s/^pkgver=.*/pkgver=9.9/
	END
}

@test "rlock.spec puts each installed file into one package, except the archive of the library" {
	sed -n '/^%files/,/^%changelog/p' "$TOP/packaging/rpm/rlock.spec" | grep -E '^%\{|^/' |
		sed -e 's|%{_bindir}|/usr/bin|; s|%{_libexecdir}|/usr/libexec|; s|%{_libdir}|/usr/lib|; s|%{_includedir}|/usr/include|; s|%{_datadir}|/usr/share|; s|%{_docdir}|/usr/share/doc|' \
			-e "s|%{_mandir}|/usr/share/man|; s|%{_tmpfilesdir}|/usr/lib/tmpfiles.d|; s|[*]$||; s|%{version}|$VERSION|" | sort >listed
	files "$INSTALLED" | grep -vx /usr/lib/librlock.a | sed 's|/man3/.*\.3$|/man3/*.3|; s|/examples/.*|/examples/|' | sort -u >installed
	assert [ "$(wc -l <installed)" -gt 10 ]
	run -0 diff installed listed
}

@test "each function of the library has a manual page, which is librlock(3); make uninstall removes every file" {
	header_functions >functions
	assert [ "$(wc -l <functions)" -gt 40 ]
	run -0 grep -rLx '.so man3/librlock.3' "$INSTALLED/usr/share/man/man3"
	assert_output "$INSTALLED/usr/share/man/man3/librlock.3"
	run -0 diff <(cat functions <(echo librlock) | sort) <(basename -as .3 "$INSTALLED"/usr/share/man/man3/* | sort)
	cp -R "$INSTALLED" root
	run_make "$TOP" BUILD="$BATS_FILE_TMPDIR/build" PREFIX=/usr DESTDIR="$PWD/root" uninstall
	run -0 find root ! -type d
	assert_output ''
}

@test "APKBUILD moves each part of the library to its package, and leaves the rest to that of the program" {
	# A stand-in for the amove of abuild, with what APKBUILD needs of it.
	cat >amove <<-'END'
		#!/bin/sh
		cd "$pkgdir"
		for path in $*; do
			mkdir -p "$subpkgdir/${path%/*}"
			mv "$path" "$subpkgdir/$path" || exit
		done
	END
	chmod +x amove
	cp -a "$INSTALLED" main
	local part
	for part in librlock dev; do
		pkgdir=$PWD/main subpkgdir=$PWD/$part PATH=$PWD:$PATH in_apkbuild "$part"
	done
	run -0 files librlock
	assert_output "/usr/lib/librlock.so.1"$'\n'"/usr/lib/librlock.so.$VERSION"
	run -0 files dev
	assert_output '/usr/include/rlock.h
/usr/lib/librlock.a
/usr/lib/librlock.so
/usr/lib/pkgconfig/librlock.pc'
	run -0 files main
	refute_line --regexp '/lib/librlock|/include/'
	assert_line /usr/bin/rlock
	# For each subpackage there must be a function in APKBUILD or in abuild.
	run -0 in_apkbuild eval 'echo $subpackages'
	assert_output 'librlock librlock-dev:dev rlock-doc rlock-bash-completion rlock-zsh-completion rlock-fish-completion'
}
