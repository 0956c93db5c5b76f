#!/bin/sh
# Makes what a release is: the source archive of what is committed, its SBOM, and their checksums. The same commit gives
# the same bytes, wherever and whenever it is made.
#
#   packaging/dist.sh FOLDER
#
# FOLDER gets rlock-VERSION.tar.gz, rlock-VERSION.spdx.json and SHA256SUMS, which has the static programs of `make static`,
# too; all else that was there is removed first. Takes what 'tools/deps.sh dist' installs.
set -eu
cd "$(dirname "$0")/.."

out=$(realpath -m "$1")
# An unpacked archive may be inside a repository of another project.
if ! prefix=$(git rev-parse --show-prefix 2>/dev/null) || [ -n "$prefix" ]; then
	echo "dist.sh: '$PWD' is not the top of a git repository: an archive is made of a commit" >&2
	exit 66
fi
version=$(git show HEAD:lib/rlock.h | sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p')
name=rlock-$version

mkdir -p "$out"
find "$out" -mindepth 1 ! -name "$name-linux-*" -delete
# The user's own settings would change modes and ends of lines. Times are the commit's.
git -c tar.umask=0022 -c core.autocrlf=false -c core.attributesFile=/dev/null \
	archive --format=tar --prefix="$name/" -o "$out/$name.tar" HEAD
gzip -n -9 "$out/$name.tar"
packaging/sbom.py "$out/$name.tar.gz" >"$out/$name.spdx.json"
(cd "$out" && sha256sum "$name"[.-]* >SHA256SUMS)
