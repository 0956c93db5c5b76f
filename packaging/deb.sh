#!/bin/sh
# Build the Debian packages and their source package from the last commit, or from an unpacked source archive. Check them with
# lintian.
#
#   packaging/deb.sh FOLDER
#
# FOLDER gets the packages. Its other files are removed. 'tools/deps.sh packages' installs what this needs.
set -eu
cd "$(dirname "$0")/.."

out=$(realpath -m "$1")
rm -rf "$out"
mkdir -p "$out/rlock"
# Test that this is the top of the repository: an unpacked archive may be inside another repository.
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
# Clear the environment: variables that the caller gave to make (BUILD, PREFIX, CC) would reach the make of the package.
env -i PATH="$PATH" HOME="${HOME-/}" ${TMPDIR+"TMPDIR=$TMPDIR"} ${TZ+"TZ=$TZ"} ${LANG+"LANG=$LANG"} \
	${LC_ALL+"LC_ALL=$LC_ALL"} ${DEB_BUILD_OPTIONS+"DEB_BUILD_OPTIONS=$DEB_BUILD_OPTIONS"} \
	${DEB_BUILD_PROFILES+"DEB_BUILD_PROFILES=$DEB_BUILD_PROFILES"} \
	dpkg-buildpackage --no-sign --build=full
cd "$out"
rm -r "rlock-$version"
# newer-standards-version only means that this lintian is older than the Policy that the packages follow.
lintian --info --display-info --display-experimental --pedantic --suppress-tags newer-standards-version \
	--fail-on error,warning,info,pedantic,experimental -- *.changes
