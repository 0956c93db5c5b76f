#!/usr/bin/env bash
# Tries new inputs on fuzz targets, each for a while, beginning with its corpus, which is not changed. An
# input that is a finding stays in FUZZ_DIR, and so does the corpus with what was found to be new.
#
#   FUZZ_DIR=build/fuzz FUZZ_SECONDS=20 tests/fuzz/run.sh TARGET...
#   tests/fuzz/run.sh --pack FILE...       the lines that these inputs are in tests/fuzz/corpus/TARGET
#
#   JOBS           how many at a time (one for each processor)
#
# One line a target, and last of all how many of them passed and failed.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${FUZZ_DIR:=build/fuzz}" "${FUZZ_SECONDS:=20}" "${JOBS:=$(nproc)}"
here=tests/fuzz

unset "${!RLOCK_@}" REDISCLI_AUTH
export LC_ALL=C.UTF-8
export ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1

# last PATTERN LOG: what the last line of that kind says behind it, up to a blank.
last() {
	sed -nE "s/.*$1 *([0-9]+).*/\1/p" "$2" | tail -n 1
}

# unpack FILE DIRECTORY: each line is an input, as `printf %b` reads it. One that ends in a backslash goes on in the next line.
unpack() {
	local part line='' number=0
	while IFS= read -r part; do
		line+=$part
		# A backslash of the input is two.
		if [[ $part =~ \\+$ ]] && ((${#BASH_REMATCH[0]} % 2)); then
			line=${line%?}
			continue
		fi
		printf '%b' "$line" >"$2/$number"
		line='' number=$((number + 1))
	done <"$1"
}

# pack FILE...: prints the line of each.
pack() {
	local file
	for file; do
		od -An -v -tu1 -w1 "$file" | awk '
			function put(text) {
				if (column + length(text) > 400) { printf "\\\n"; column = 0 }
				printf "%s", text
				column += length(text)
			}
			$1 == 92 { put("\\\\"); next }
			$1 == 10 { put("\\n"); next }
			$1 == 13 { put("\\r"); next }
			{ put(sprintf($1 < 32 || $1 > 126 ? "\\x%02x" : "%c", $1)) }
			END { print "" }'
	done
}

# try TARGET: the corpus first, so that a finding in there is told apart from a new one.
try() {
	local target=$1 dir=$FUZZ_DIR/$1.work log=$FUZZ_DIR/$1.log status=0
	# All that a target may want: more memory or time for one input is a finding.
	local -a options=(-timeout=20 -rss_limit_mb=1024 -malloc_limit_mb=16 -artifact_prefix="$FUZZ_DIR/$target-" -close_fd_mask=2)

	rm -rf "$dir" "$FUZZ_DIR/$target"-{crash,leak,timeout,oom,slow-unit}-*
	mkdir -p "$dir"
	unpack "$here/corpus/$target" "$dir"
	[ ! -f "$here/$target.dict" ] || options+=("-dict=$here/$target.dict")
	"$FUZZ_DIR/$target" "${options[@]}" -runs=0 "$dir" >"$log" 2>&1 || status=$?
	if [ $status -eq 0 ]; then
		"$FUZZ_DIR/$target" "${options[@]}" -print_final_stats=1 -max_len=4096 \
			-max_total_time="$FUZZ_SECONDS" "$dir" >"$log" 2>&1 || status=$?
	fi
	report "$target" "$status" "$log"
}

report() {
	local target=$1 status=$2 log=$3 input

	if [ "$status" -eq 0 ]; then
		echo "ok $target: $(last 'number_of_executed_units:' "$log") executions," \
			"$(last 'new_units_added:' "$log") new inputs," \
			"coverage $(last 'cov:' "$log"), features $(last 'ft:' "$log"), no finding"
		return
	fi
	input=$(find "$FUZZ_DIR" -maxdepth 1 -name "$target-*-*" | head -n 1)
	echo "not ok $target: exit status $status, ${input:-no input was written}; all of it: $log"
	grep -avE '^#[0-9]+|^(INFO|stat|MS):| in fuzzer::' "$log" | tail -n 60 | sed 's/^/# /' || :
}

if [ "$1" = --pack ]; then
	pack "${@:2}"
	exit
fi

export FUZZ_DIR FUZZ_SECONDS here
export -f last unpack try report

printf '%s\n' "$@" | xargs -P "$JOBS" -n 1 bash -euc 'try "$@"' try | tee "$FUZZ_DIR/lines"
passed=$(grep -c '^ok ' "$FUZZ_DIR/lines") || :
failed=$(($# - passed))
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
