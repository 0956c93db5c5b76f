#!/bin/sh
# Make the source archive of the last commit, and its SBOM. The same commit gives the same bytes, wherever and whenever the
# archive is made.
#
#   packaging/dist.sh FOLDER
#
# FOLDER gets rlock-VERSION.tar.gz and rlock-VERSION.spdx.json. 'tools/deps.sh dist' installs what this needs.
set -eu
cd "$(dirname "$0")/.."

out=$(realpath -m "$1")
# Test that this is the top of the repository: an unpacked archive may be inside another repository.
if ! prefix=$(git rev-parse --show-prefix 2>/dev/null) || [ -n "$prefix" ]; then
	echo "dist.sh: '$PWD' is not the top of a git repository: an archive is made of a commit" >&2
	exit 66
fi
version=$(git show HEAD:lib/rlock.h | sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p')
name=rlock-$version

mkdir -p "$out"
# Override the user's settings, which would change modes and line ends. Times are those of the commit.
git -c tar.umask=0022 -c core.autocrlf=false -c core.attributesFile=/dev/null \
	archive --format=tar --prefix="$name/" -o "$out/$name.tar" HEAD
gzip -n -9 -f "$out/$name.tar"
packaging/sbom.py "$out/$name.tar.gz" >"$out/$name.spdx.json"
