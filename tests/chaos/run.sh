#!/usr/bin/env bash
# Runs the scenarios and prints a table of them: repetitions, faults, violations, the worst time.
#
#   tests/chaos/run.sh [FILE...]   files of tests/chaos; by default all of them
#
#   SCALE          number of repetitions, as a multiple of the usual number (1)
#   CHAOS_TABLE    file for the rows of the table (build/chaos.table)
#
# and the variables of tests/run.sh.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${CHAOS_TABLE:=build/chaos.table}" "${SCALE:=1}"
# Run one file per processor: with more, scenarios whose leases last only a second or two would be too late.
[ -n "${JOBS:-}" ] || JOBS=$(nproc)
CHAOS_TABLE=$(realpath -m "$CHAOS_TABLE")
export CHAOS_TABLE SCALE JOBS

if [ "${1-}" = --table ]; then
	printf '\nSCALE=%s\n' "$SCALE"
	{
		echo 'scenario|repetitions|faults|violations|worst'
		[ ! -e "$CHAOS_TABLE" ] || sort "$CHAOS_TABLE"
	} | column -t -s '|'
	echo
	exit
fi

[ $# -gt 0 ] || set -- tests/chaos/*.bats
mkdir -p "${CHAOS_TABLE%/*}"
rm -f "$CHAOS_TABLE"
LIMIT=$(awk -v scale="$SCALE" 'BEGIN { print int(900 + 1800 * scale) }') \
	CONCLUSION='tests/chaos/run.sh --table' exec tests/run.sh "$@"
