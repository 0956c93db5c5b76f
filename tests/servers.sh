#!/usr/bin/env bash
# Runs the tests once on each of the servers that tools/servers.sh brings, and prints a table: what each said of itself, and
# how many tests passed and failed there.
#
#   tests/servers.sh [FILE...]   by default all tests
#
#   SERVERS        the servers, by their names there (all); "turn" is one that is not optional, by the commit
#   SERVERS_DIR    where they are (build/servers)
#
# and what tests/run.sh reads. A server that cannot be brought is said, and fails the run unless it is optional.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 71

: "${SERVERS:=}" "${SERVERS_DIR:=build/servers}"
export SERVERS_DIR

# By the commit, so that a run that failed can be repeated.
choose() {
	local commit
	mapfile -t all < <(tools/servers.sh --list no)
	commit=$(git rev-parse --short=7 HEAD 2>/dev/null) || commit=0
	echo "${all[0x${commit:0:7} % ${#all[@]}]}"
}

case $SERVERS in
'') SERVERS=$(tools/servers.sh --list) ;;
turn) SERVERS=$(choose) ;;
esac

log=$(mktemp)
trap 'rm -f "$log"' EXIT
table='server|passed|failed|skipped' has_run=no status=0

# without_server NAME
without_server() {
	table+=$'\n'"$1|cannot be brought"
	tools/servers.sh --list yes | grep -qxF "$1" || status=1
}

# play NAME DIR FILE...: the tests find the programs of DIR.
play() {
	local version counts
	version=$(sed -E 's/ server v=([^ ]*).*/ \1/' <<<"$("$2/redis-server" --version)")
	printf '\n==== %s: %s\n' "$1" "$version"
	PATH=$2:$PATH tests/run.sh "${@:3}" </dev/null 2>&1 | tee "$log"
	[ "${PIPESTATUS[0]}" -eq 0 ] || status=1
	counts=$(tail -n 1 "$log" | sed -nE 's/^([0-9]+) passed, ([0-9]+) failed(, ([0-9]+) skipped)?$/\1|\2|\4/p')
	table+=$'\n'"$version|${counts:-no result}" has_run=yes
}

for name in $SERVERS; do
	if dir=$(tools/servers.sh "$name"); then
		play "$name" "$dir" "$@"
	else
		without_server "$name"
	fi
done

echo
awk -F '|' '{ printf "%-15s %6s  %6s  %s\n", $1, $2, $3, $4 }' <<<"$table"
[ $has_run = yes ] && exit $status
