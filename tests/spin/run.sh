#!/usr/bin/env bash
# Run spin on tests/spin/holding.pml, the model of how a lock is held. Check each guarantee in the scenarios where it matters.
# Also check each mutant: it breaks a rule of the design, so spin must find an error. Print one line for each run, and a summary.
#
#   tests/spin/run.sh [WORD]       all runs, or those whose line contains WORD
#
#   SPIN_DIR       working directory, in which logs and trails stay (build/spin)
#   CC             compiler for the C that spin writes
#   JOBS           number of runs at a time (one for each processor)
#   MEMORY_MB      memory limit of one run in MB; a run that needs more fails (1000)
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${SPIN_DIR:=build/spin}" "${CC:=cc}" "${JOBS:=$(nproc)}" "${MEMORY_MB:=1000}"
model=$PWD/tests/spin/holding.pml

# Each line: a guarantee, a scenario, and mutants. Each mutant is a run of its own; "none" is the run of the unchanged model.
runs=$(while read -r check scenario mutants; do
	for mutant in $mutants; do echo "$check $scenario $mutant"; done
done <<'END'
exclusion contenders none lease_from_reply deadline_at_lease_end holder_enforces_nothing takes_over_nothing
exclusion told none front_adopts_nothing start_not_forbidden start_never_forbidden another_after_undo
exclusion told release_before_phase loss_unseen_at_end told_after_signal renewer_adopts_nothing both_release
exclusion told release_before_all_gone
exclusion leftovers none renewer_adopts_nothing release_before_all_gone
exclusion stops none leaves_stopped_renewer start_after_deadline
late_renewals told none
late_renewals nested none renew_without_id
counting told none
counting nested none release_without_id
orphans told none
orphans stops none start_without_front
orphans leftovers none
free_at_end told none
free_at_end leftovers none
free_at_end nested none
exit_status alone none reaped_before_written end_read_before_clock killed_before_reason gone_is_lost gone_is_done
late_renewals contenders renew_takes_anew
counting contenders acquire_without_id another_hold_id
orphans contenders blind_to_end blind_to_front
free_at_end contenders acquire_without_lease
END
)

# build_and_run CHECK SCENARIO MUTANT: builds the checker in the current directory, and runs it.
build_and_run() {
	local optimize=-O2
	# Do not optimize a mutant: its assertion fails in less time than an optimizing compiler needs.
	[ "$3" = none ] || optimize=-O0
	spin "-P$CC -E -x c" -a -DCHECK="$1" -DSCENARIO="$2" -DMUTANT="$3" "$model" || return
	$CC $optimize -w -DSAFETY -DMEMLIM="$MEMORY_MB" -o pan pan.c || return
	./pan -n -m20000
}

# is_as_wanted MUTANT: whether the file "log" shows the right result of the run. A mutant must make an assertion fail. Without a
# mutant there must be no error, and spin must have reached every state: a limit of depth or memory hides errors.
is_as_wanted() {
	if [ "$1" = none ]; then
		grep -q 'errors: 0$' log && ! grep -qE 'Search not completed|max search depth' log
	else
		grep -q 'assertion violated' log
	fi
}

# go_through CHECK SCENARIO MUTANT: makes one run, and prints a line: "ok" or "not ok", the time it took, and these three words.
# If the run has failed, also prints the end of its log.
go_through() {
	local dir=$SPIN_DIR/$1-$2-$3 result='not ok'
	rm -rf "$dir"
	mkdir -p "$dir"
	cd "$dir"
	build_and_run "$@" >log 2>&1 </dev/null || echo "exit status $?" >>log
	! is_as_wanted "$3" || result=ok
	printf '%-6s %s  %s (%s), with: %s\n' "$result" "$(grep -o 'elapsed time .*' log || :)" "$1" "$2" "$3"
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
