#!/bin/sh
# Make the files of a release, from the last commit alone. The same commit, compiler and libraries give the same bytes.
#
#   packaging/release.sh FOLDER
#
# FOLDER gets the source archive, its SBOM, a static program with its notices and a wheel for each architecture, the Debian
# packages, SHA256SUMS and NOTES. Its other files are removed. 'tools/deps.sh release' installs what this needs.
set -eu
cd "$(dirname "$0")/.."

out=$(realpath -m "$1")
rm -rf "$out"
packaging/dist.sh "$out"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xzf "$out"/rlock-*.tar.gz -C "$work" --strip-components=1
cd "$work"
packaging/versions.sh

# The variables of the caller's make (CFLAGS, BUILD, ...) would change the programs.
build() {
	env -i PATH="$PATH" HOME="${HOME-/}" LC_ALL=C.UTF-8 ${http_proxy+"http_proxy=$http_proxy"} \
		${https_proxy+"https_proxy=$https_proxy"} make -s -j "$(nproc)" "$@"
}

this=$(uname -m)
case $this in
x86_64) other=aarch64 ;;
aarch64) other=x86_64 ;;
*)
	echo "release.sh: a release is made on x86_64 or aarch64, not on $this" >&2
	exit 64
	;;
esac
build static
build static ARCH="$other"
cp build/dist/* "$out"
for arch in "$this" "$other"; do
	packaging/wheel.py "$out"/rlock-*-linux-"$arch"
done

packaging/deb.sh "$work/deb"
find deb -name '*.deb' ! -name '*-dbgsym_*' -exec cp -t "$out" {} +

cd "$out"
sha256sum -- * >"$work/SHA256SUMS"
cp "$work/SHA256SUMS" .
{
	awk '/^## / { sections++; next } sections == 1' "$work/CHANGELOG.md"
	printf '\n## SHA-256\n\n'
	sed 's/^/    /' SHA256SUMS
} | sed '1{/^$/d}' >NOTES
