#!/bin/sh
# Builds the Debian packages of what is committed, or of an unpacked tarball, and checks them with lintian.
#
#   packaging/deb.sh FOLDER
#
# FOLDER gets the packages; what was there is removed first. Takes what 'tools/deps.sh packages' installs.
set -eu
cd "$(dirname "$0")/.."

out=$(realpath -m "$1")
version=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
packaged=$(dpkg-parsechangelog -l packaging/debian/changelog -S Version)
if [ "$packaged" != "$version" ]; then
	echo "deb.sh: packaging/debian/changelog has version $packaged, lib/rlock.h has $version" >&2
	exit 78
fi

rm -rf "$out"
tree=$out/rlock-$version
mkdir -p "$tree"
# Not the repository that an unpacked tarball may be in.
if [ "$(git rev-parse --show-prefix 2>/dev/null || echo none)" = '' ]; then
	git archive HEAD | tar -x -C "$tree"
else
	tar -c --exclude='./build*' . | tar -x -C "$tree"
fi
mv "$tree/packaging/debian" "$tree/debian"
cd "$tree"
dpkg-buildpackage --no-sign --build=binary
rm -r "$tree"
cd "$out"
lintian --pedantic --display-info --fail-on error,warning,info,pedantic -- *.changes
