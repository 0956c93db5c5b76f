#!/usr/bin/env bash
# Runs the tests once on each server that tools/servers.sh installs, and prints a table: the version of each, and how many tests
# passed and failed.
#
#   tests/servers.sh [FILE...]   by default all tests
#
#   SERVERS        the servers, by their names in tools/servers.sh (all); "turn": a single one that is not optional, chosen by the commit
#   SERVERS_DIR    where they are installed (build/servers)
#
# and the variables of tests/run.sh. A server that cannot be installed is reported, and fails the run unless it is optional.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 71

: "${SERVERS:=}" "${SERVERS_DIR:=build/servers}"
export SERVERS_DIR

case $SERVERS in
'') SERVERS=$(tools/servers.sh --list) ;;
turn)
	# Choose the server by the commit, so that a failed run can be repeated.
	mapfile -t all < <(tools/servers.sh --list no)
	commit=$(git rev-parse --short=7 HEAD 2>/dev/null) || commit=0
	SERVERS=${all[0x${commit:0:7} % ${#all[@]}]}
	;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
table='server|passed|failed|skipped' has_run=no status=0

for name in $SERVERS; do
	if ! dir=$(tools/servers.sh "$name"); then
		table+=$'\n'"$name|cannot be brought"
		tools/servers.sh --list yes | grep -qxF "$name" || status=1
		continue
	fi
	# Put the server's programs into the PATH of the tests.
	version=$("$dir/redis-server" --version | sed -E 's/ server v=([^ ]*).*/ \1/')
	printf '\n==== %s: %s\n' "$name" "$version"
	PATH=$dir:$PATH tests/run.sh "$@" </dev/null 2>&1 | tee "$log"
	[ "${PIPESTATUS[0]}" -eq 0 ] || status=1
	counts=$(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1|\2|\4/p')
	table+=$'\n'"$version|${counts:-no result}" has_run=yes
done

echo
awk -F '|' '{ printf "%-15s %6s  %6s  %s\n", $1, $2, $3, $4 }' <<<"$table"
[ $has_run = yes ] && exit $status
