#!/bin/sh
# Print the notices that must be published with a static program: the licences of rlock and of the libraries in the program. The
# texts are those of Debian's packages.
#
#   packaging/notices.sh MAP [SYSROOT]
#
# MAP is the linker's map of the program. SYSROOT is the folder of tools/sysroot.sh, for a program of another architecture.
set -eu
LC_ALL=C
export LC_ALL
map=$(realpath "$1")
sysroot=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."

licences=/usr/share/common-licenses
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "notices.sh: $1" >&2
	exit 66
}

title() {
	printf '\n%s\n%s\n\n' '------------------------------------------------------------------------' "$1"
}

# package_of FILE: print the directory of the package's copyright, its source package, and the packages that it was built from.
package_of() {
	database=--admindir=/var/lib/dpkg root='' file=$1
	case $file in
	"${sysroot:-none}"/*)
		database=--admindir=$sysroot/var/lib/dpkg root=$sysroot
		file=${file#"$sysroot"}
		;;
	esac
	package=$(dpkg-query "$database" -S "$file" 2>/dev/null) || fail "no package of Debian has '$1', so its licence is not known"
	# shellcheck disable=SC2016 # dpkg-query expands this.
	dpkg-query "$database" -W -f "$root/usr/share/doc/"'${Package} ${source:Package} ${source:Version} ${Built-Using}\n' \
		"${package%%: *}"
}

sed -n 's/^\(\/.*\.a\)(.*/\1/p' "$map" | sort -u >"$work/archives"
[ -s "$work/archives" ] || fail "'$1' names no archive"
while read -r archive; do
	case $archive in
	# LICENSE has the licence of our own archive. The GCC Runtime Library Exception requires no notice.
	*/librlock.a | */libgcc.a | */libgcc_eh.a) ;;
	*) package_of "$(realpath "$archive")" >>"$work/found" ;;
	esac
done <"$work/archives"
# Packages of one source have the same copyright.
sort -u -k 2,3 "$work/found" >"$work/packages"
: >"$work/references"

version=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
cat <<END
This program is rlock $version. It contains the libraries that are named below. The licences follow, first that of rlock.

Some of the libraries are under the LGPL: you may replace them by a changed version. To do so, unpack rlock-$version.tar.gz, the
source that is published with this program, install your version of the library, and run 'make static'. Debian has the source
of each library under the name and version given here: 'apt-get source NAME=VERSION' fetches it.

The notices also name licences of files that are not in the program, such as the GPL of the utilities of glibc.
END
title rlock
cat LICENSE
while read -r doc name source_version built_using; do
	[ -r "$doc/copyright" ] || fail "'$doc/copyright' is missing"
	title "$name=$source_version${built_using:+, built using $built_using}"
	cat "$doc/copyright"
	grep -o "$licences/[A-Za-z0-9.+-]*" "$doc/copyright" >>"$work/references" || :
done <"$work/packages"
sed 's/[.]*$//' "$work/references" | sort -u >"$work/texts"
while read -r text; do
	title "${text##*/}"
	cat "$text"
done <"$work/texts"
