#!/bin/sh
# Unpack Debian's static libraries of another architecture below FOLDER, for a cross compiler.
# Nothing is installed: apt-get reads the sources of this machine, but keeps the lists of the other architecture in FOLDER.
#
#   tools/sysroot.sh ARCH FOLDER
#
# ARCH is aarch64 or x86_64. Needs Debian, a network, and no root.
set -eu

case $1 in
aarch64) arch=arm64 ;;
x86_64) arch=amd64 ;;
*)
	echo "sysroot.sh: '$1' is neither aarch64 nor x86_64" >&2
	exit 64
	;;
esac
mkdir -p "$2"
folder=$(realpath "$2")
work=$(mktemp -d "$folder/new.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/debs"
: >"$work/status"

# get ARG...: run apt-get with an empty list of installed packages, so that it considers no package of this machine.
get() {
	apt-get -qq -o Acquire::Retries=3 -o APT::Architecture="$arch" -o APT::Architectures::="$arch" -o APT::Sandbox::User=root \
		-o Dir::State="$work/state" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" "$@"
}

get update
(cd "$work/debs" && get download libargtable2-dev libhiredis-dev libssl-dev libzstd-dev zlib1g-dev)
# Also write a database of dpkg, since packaging/notices.sh needs it: dpkg-query finds the package of a file in it.
database=$folder/var/lib/dpkg
mkdir -p "$database/info"
: >"$database/status"
for deb in "$work"/debs/*.deb; do
	dpkg-deb -x "$deb" "$folder"
	{
		dpkg-deb -f "$deb"
		printf 'Status: install ok installed\n\n'
	} >>"$database/status"
	dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n 's|^\.\(/.*[^/]\)$|\1|p' >"$database/info/$(dpkg-deb -f "$deb" Package).list"
done
touch "$folder/complete"
