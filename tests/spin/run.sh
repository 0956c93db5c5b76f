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
exclusion told none
exclusion leftovers none
exclusion stops none
late_renewals told none
late_renewals nested none
counting told none
counting nested none
orphans told none
orphans stops none
orphans leftovers none
free_at_end told none
free_at_end leftovers none
free_at_end nested none
exit_status alone none
exclusion contenders lease_from_reply
exclusion contenders deadline_at_lease_end
exclusion contenders holder_enforces_nothing
exclusion contenders takes_over_nothing
exclusion told front_adopts_nothing
exclusion told start_not_forbidden
exclusion told start_never_forbidden
exclusion told another_after_undo
exclusion told release_before_phase
exclusion told loss_unseen_at_end
exclusion told told_after_signal
exclusion told renewer_adopts_nothing
exclusion told both_release
exclusion told release_before_all_gone
exclusion leftovers renewer_adopts_nothing
exclusion leftovers release_before_all_gone
exclusion stops leaves_stopped_renewer
exclusion stops start_after_deadline
late_renewals nested renew_without_id
late_renewals contenders renew_takes_anew
counting contenders acquire_without_id
counting contenders another_hold_id
counting nested release_without_id
orphans contenders blind_to_end
orphans contenders blind_to_front
orphans stops start_without_front
free_at_end contenders acquire_without_lease
exit_status alone reaped_before_written
exit_status alone end_read_before_clock
exit_status alone killed_before_reason
exit_status alone gone_is_lost
exit_status alone gone_is_done
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

grep -e "${1-.}" <<<"$runs" | xargs -P "$JOBS" -L 1 bash -euc 'go_through "$@"' go_through | tee "$SPIN_DIR/lines"
passed=$(grep -c '^ok ' "$SPIN_DIR/lines") || :
failed=$(($(grep -ce "${1-.}" <<<"$runs") - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
