#!/usr/bin/env bash
# Runs fuzz targets, each for some time, starting with its corpus, which is not changed. Inputs that fail are left in FUZZ_DIR, as is the
# corpus with the new inputs.
#
#   FUZZ_DIR=build/fuzz FUZZ_SECONDS=20 tests/fuzz/run.sh TARGET...
#   tests/fuzz/run.sh --pack FILE...       prints these inputs as lines of tests/fuzz/corpus/TARGET
#
#   JOBS           targets at the same time (one per processor)
#
# Prints a line per target, and then how many passed and failed.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${FUZZ_DIR:=build/fuzz}" "${FUZZ_SECONDS:=20}" "${JOBS:=$(nproc)}"
FUZZ_DIR=$(realpath "$FUZZ_DIR")
unset "${!RLOCK_@}" REDISCLI_AUTH
export FUZZ_DIR FUZZ_SECONDS LC_ALL=C.UTF-8
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1

# pack FILE: prints the file escaped for `printf %b`. Long lines are folded, since lintian rejects lines of more than 512 bytes: a
# line that begins with a tab continues the previous one.
pack() {
	od -An -v -tu1 -w1 "$1" | awk '
		$1 == 92 { printf "\\\\"; next }
		$1 == 10 { printf "\\n"; next }
		$1 == 13 { printf "\\r"; next }
		{ printf($1 < 32 || $1 > 126 ? "\\x%02x" : "%c", $1) }
		END { print "" }' | sed -E 's/.{400}/&\n\t/g'
}

# unfolded FILE: prints a corpus file with one line per input.
unfolded() {
	sed -e ':join' -e '$!{N; b join' -e '}' -e 's/\n\t//g' "$1"
}

# last PATTERN LOG: prints the word after PATTERN in the last line that has it.
last() {
	sed -nE "s/.*$1 *([0-9]+).*/\1/p" "$2" | tail -n 1
}

# try TARGET: first runs only the inputs of the corpus. If one of them fails, no new inputs are made.
try() {
	local target=$1 dir=$FUZZ_DIR/$1.work log=$FUZZ_DIR/$1.log status=0 line number=0
	# Limits for one input. If an input needs more memory or time, that is a finding.
	local -a program=("$FUZZ_DIR/$target" -timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=16
		-artifact_prefix="$FUZZ_DIR/$target-" -close_fd_mask=2)

	rm -rf "$dir" "$FUZZ_DIR/$target"-{crash,leak,timeout,oom,slow-unit}-*
	mkdir -p "$dir"
	while IFS= read -r line; do
		number=$((number + 1))
		printf '%b' "$line" >"$dir/$number"
	done < <(unfolded "tests/fuzz/corpus/$target")
	"${program[@]}" -runs=0 "$dir" >"$log" 2>&1 &&
		"${program[@]}" -print_final_stats=1 -max_len=4096 -max_total_time="$FUZZ_SECONDS" "$dir" >"$log" 2>&1 || status=$?
	if [ "$status" -eq 0 ]; then
		echo "ok $target: $(last 'number_of_executed_units:' "$log") executions," \
			"$(last 'new_units_added:' "$log") new inputs," \
			"coverage $(last 'cov:' "$log"), features $(last 'ft:' "$log"), no finding"
	else
		echo "not ok $target: exit status $status; an input that is a finding is $FUZZ_DIR/$target-*; all of it: $log"
		grep -avE '^#[0-9]+|^(INFO|stat|MS):| in fuzzer::' "$log" | tail -n 60 | sed 's/^/# /' || :
	fi
}

if [ "$1" = --pack ]; then
	for file in "${@:2}"; do
		pack "$file"
	done
	exit
fi

export -f last try unfolded
printf '%s\n' "$@" | xargs -P "$JOBS" -n 1 bash -euc 'try "$@"' try | tee "$FUZZ_DIR/lines"
passed=$(grep -c '^ok ' "$FUZZ_DIR/lines") || :
failed=$(($# - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
