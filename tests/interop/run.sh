#!/usr/bin/env bash
# Run the tests of this directory with real Redisson clients: the oldest and the newest version that we support, which pom.xml
# names. Build the Java side first if it is missing, or older than its source.
#
#   tests/interop/run.sh [FILE...]
#
#   REDISSON       profiles of pom.xml to run (oldest newest)
#   INTEROP_DIR    where to build (build/interop)
#   TURNS          how many turns each kind of lock takes in stress.bats (2000)
#
# and the variables of tests/run.sh. Needs Java and Maven, which 'tools/deps.sh interop' installs.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${REDISSON:=oldest newest}" "${INTEROP_DIR:=build/interop}"
# Run two test files per processor: the Java service of each waits for about half of the time.
[ -n "${JOBS:-}" ] || JOBS=$(($(nproc) * 2))
export JOBS

[ $# -gt 0 ] || set -- tests/interop/*.bats

# build PROFILE DIR
build() {
	if [ -e "$2/built" ] && [ -z "$(find tests/interop/pom.xml tests/interop/src -newer "$2/built")" ]; then
		return
	fi
	echo "building the Java side in $2"
	rm -rf "$2"
	mvn --batch-mode --quiet -Dstyle.color=never -f tests/interop/pom.xml -P "$1" -DoutputDirectory="$2" compile
	touch "$2/built"
}

status=0
for profile in $REDISSON; do
	dir=$(realpath -m "$INTEROP_DIR")/$profile
	build "$profile" "$dir"
	jars=("$dir"/lib/redisson-[0-9]*.jar)
	version=${jars[0]##*/redisson-}
	version=${version%.jar}
	printf '\n==== Redisson %s\n' "$version"
	REDISSON_DIR=$dir REDISSON_VERSION=$version tests/run.sh "$@" || status=1
done
exit $status
