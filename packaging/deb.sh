#!/bin/sh
# Builds the Debian packages and their source package, of what is committed, or of an unpacked tarball, and checks them with
# lintian.
#
#   packaging/deb.sh FOLDER
#
# FOLDER gets the packages; what was there is removed first. Takes what 'tools/deps.sh packages' installs.
set -eu
cd "$(dirname "$0")/.."

out=$(realpath -m "$1")
rm -rf "$out"
mkdir -p "$out/rlock"
# Not the repository that an unpacked tarball may be in.
if [ "$(git rev-parse --show-prefix 2>/dev/null || echo none)" = '' ]; then
	git archive HEAD | tar -x -C "$out/rlock"
else
	tar -c --exclude='./build*' --exclude=./.git --exclude="./$(realpath --relative-to=. "$out")" . |
		tar -x -C "$out/rlock"
fi

cd "$out/rlock"
version=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
packaged=$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)
if [ "$packaged" != "$version" ]; then
	echo "deb.sh: packaging/debian/changelog has version $packaged, lib/rlock.h has $version" >&2
	exit 78
fi
mv packaging/debian debian
mv "$out/rlock" "$out/rlock-$version"
cd "$out/rlock-$version"
# What the caller told make (BUILD, PREFIX, CC) would get through to the make of the package, by its environment.
env -i PATH="$PATH" HOME="${HOME-/}" ${TMPDIR+"TMPDIR=$TMPDIR"} ${TZ+"TZ=$TZ"} ${LANG+"LANG=$LANG"} \
	${LC_ALL+"LC_ALL=$LC_ALL"} ${DEB_BUILD_OPTIONS+"DEB_BUILD_OPTIONS=$DEB_BUILD_OPTIONS"} \
	${DEB_BUILD_PROFILES+"DEB_BUILD_PROFILES=$DEB_BUILD_PROFILES"} \
	dpkg-buildpackage --no-sign --build=full
cd "$out"
rm -r "rlock-$version"
# A lintian that is older than the Policy which the packages follow says that, and no more.
lintian --info --display-info --display-experimental --pedantic --suppress-tags newer-standards-version \
	--fail-on error,warning,info,pedantic,experimental -- *.changes
