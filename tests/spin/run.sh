#!/usr/bin/env bash
# Has spin go through the model of how a lock is held, tests/spin/holding.pml: each guarantee in the scenarios that it
# matters in, and each mutant, which breaks a rule of the design and has to be found out. It prints one line for each, and
# one that counts them, as tests/run.sh does.
#
#   tests/spin/run.sh [WORD]       all, or those whose line has that word
#
#   SPIN_DIR       where it works, and where a log and a trail are left (build/spin)
#   CC             compiles what spin writes
#   JOBS           how many at a time (one for each processor)
#   MEMORY_MB      how much one of them may use; more is a failure (1000)
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${SPIN_DIR:=build/spin}" "${CC:=cc}" "${JOBS:=$(nproc)}" "${MEMORY_MB:=1000}"
model=$PWD/tests/spin/holding.pml

# What is checked, where, and what is broken.
runs='
exclusion contenders none
exclusion stops none
late_renewals contenders none
late_renewals nested none
counting contenders none
counting nested none
orphans contenders none
orphans stops none
free_at_end contenders none
exclusion leftovers none
orphans leftovers none
free_at_end leftovers none
free_at_end nested none
exclusion contenders lease_from_reply
exclusion contenders deadline_at_lease_end
exclusion contenders keeper_enforces_nothing
exclusion contenders renewer_enforces_nothing
exclusion contenders both_release
exclusion contenders leftovers_run_on
exclusion leftovers leftovers_run_on
exclusion leftovers renewer_blind_to_leftovers
exclusion contenders lease_state_read_twice
exclusion contenders start_not_forbidden
exclusion stops start_after_deadline
late_renewals nested renew_without_id
late_renewals contenders renew_takes_anew
counting contenders acquire_without_id
counting nested release_without_id
orphans contenders renewer_blind_to_command
orphans contenders start_never_forbidden
orphans stops renews_for_stopped_keeper
free_at_end contenders acquire_without_lease
'

# build_and_run CHECK SCENARIO MUTANT: in this directory.
build_and_run() {
	spin "-P$CC -E -x c" -a -DCHECK="$1" -DSCENARIO="$2" -DMUTANT="$3" "$model" || return
	# shellcheck disable=SC2086
	$CC -O2 -w -DSAFETY -DMEMLIM="$MEMORY_MB" -o pan pan.c || return
	./pan -n -m20000
}

# A mutant has to make an assertion fail. Without a mutant every state has to be reached: neither the depth nor the memory
# may have been too small.
is_as_wanted() {
	if [ "$1" = none ]; then
		grep -q 'errors: 0$' log && ! grep -qE 'Search not completed|max search depth' log
	else
		grep -q 'assertion violated' log
	fi
}

# go_through CHECK SCENARIO MUTANT: prints a line.
go_through() {
	local dir=$SPIN_DIR/$1-$2-$3 result='not ok' numbers
	rm -rf "$dir"
	mkdir -p "$dir"
	cd "$dir"
	build_and_run "$@" >log 2>&1 </dev/null || echo "exit status $?" >>log
	! is_as_wanted "$3" || result=ok
	numbers=$(awk '
		/depth reached/ { for (i = 1; i < NF; i++) if ($i == "reached") depth = $(i + 1) + 0 }
		/states, stored/ { states = $1 }
		/elapsed time/ { seconds = $4 }
		END { printf "%8d states, depth %4d, %5.1f s", states, depth, seconds }' log)
	if [ "$3" = none ]; then
		printf '%-6s %s  %s (%s)\n' "$result" "$numbers" "$1" "$2"
	else
		printf '%-6s %s  %s (%s) fails with: %s\n' "$result" "$numbers" "$1" "$2" "$3"
	fi
	rm -f pan pan.?
	[ "$result" = ok ] || tail -n 30 log | sed 's/^/# /'
}

mkdir -p "$SPIN_DIR"
SPIN_DIR=$(realpath "$SPIN_DIR")
export SPIN_DIR CC MEMORY_MB model
export -f build_and_run is_as_wanted go_through

# shellcheck disable=SC2016
grep -e "${1-.}" <<<"$runs" | xargs -P "$JOBS" -L 1 bash -euc 'go_through "$@"' go_through | tee "$SPIN_DIR/lines"
passed=$(grep -c '^ok ' "$SPIN_DIR/lines") || :
failed=$(($(grep -ce "${1-.}" <<<"$runs") - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
