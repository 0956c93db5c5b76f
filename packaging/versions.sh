#!/bin/sh
# Check that everything that names the version of a release names the same one.
#
#   packaging/versions.sh [TAG]
#
# TAG is the tag of the release, by default that of RLOCK_VERSION: v1.0.0, for example. Exit status 78: versions or dates differ.
set -eu
cd "$(dirname "$0")/.."

version=$(sed -n 's/^.define RLOCK_VERSION "\(.*\)"/\1/p' lib/rlock.h)
heading=$(grep -m 1 '^## ' CHANGELOG.md)
date=${heading##* }
status=0

# same FILE FOUND WANTED
same() {
	[ "$2" = "$3" ] || {
		echo "versions.sh: $1 has '$2', which should be '$3'" >&2
		status=78
	}
}

# day FORMAT: the date of CHANGELOG.md.
day() {
	LC_ALL=C date -d "$date" "+$1" 2>/dev/null || echo "a date in CHANGELOG.md"
}

same 'the tag' "${1-v$version}" "v$version"
same CHANGELOG.md "$heading" "## $version - $(day %Y-%m-%d)"
same packaging/debian/changelog "$(sed -n '1s/^rlock (\(.*\)).*/\1/p' packaging/debian/changelog)" "$version"
same packaging/debian/changelog "$(sed -n '/^ -- /{s/.*>  \(.*\) ..:.*/\1/p;q}' packaging/debian/changelog)" "$(day '%a, %d %b %Y')"
same packaging/rpm/rlock.spec "$(sed -n 's/^Version: *//p' packaging/rpm/rlock.spec)" "$version"
same packaging/rpm/rlock.spec "$(sed -n '/^%changelog/{n;s/^\* \(.*\) The .* - \(.*\)-[0-9]*$/\1 \2/p}' packaging/rpm/rlock.spec)" "$(day '%a %b %d %Y') $version"
same packaging/alpine/APKBUILD "$(sed -n 's/^pkgver=//p' packaging/alpine/APKBUILD)" "$version"
others=$(grep -rhoE 'rlock-[0-9.]+[0-9]-(linux|py3)' packaging/recipes | sed 's/-[^-]*$//' | sort -u)
same packaging/recipes "$others" "rlock-$version"
exit $status
