#!/usr/bin/env bash
# Runs files of tests that speak TAP, a few at a time; prints what each said, in order, and counts.
#
#   tests/run.sh [FILE...]     *.bats or programs; by default what $FILES says, else all there are
#
#   RLOCK_BIN      the rlock under test, first in the tests' PATH (build/rlock)
#   TOOLS_DIR      the tests' own programs, next in it, and their builtins of bash (build/tools)
#   BATS, JOBS     the bats to use, and how many files at a time (see below)
#   LIMIT          seconds after which a file is stopped: only one that hangs; each takes longer beside other load (1200)
#   TESTS_UNDER    "sanitize" or "valgrind", for tests that must know; else empty
#   UNIT_WRAPPER   goes before each program
#   FINDINGS       a directory: each file that turns up in it is a failure, and is printed
#   CONCLUSION     a command whose output goes before the sum
#   TEST           only the tests of bats whose names match this regular expression
#   KNOWN_SKIPS    files of lines "FILE: REASON", each a pattern of the shell: a test that is skipped for another reason
#                  has failed. A line that begins with # is a comment
#   TRACE          not empty: each test tells how long it took, and one that fails the lines of its helpers
#
# What a file needs of the others stands in its own tags ("# bats file_tags=long"):
#
#   long           it begins first
#   computes       it watches no lease, and begins after those that are long: processors have work while others wait
#   alone          it begins last, and no other file runs beside it
set -euo pipefail
cd "$(dirname "$0")/.."

: "${RLOCK_BIN:=build/rlock}" "${TOOLS_DIR:=build/tools}" "${BATS:=bats}" "${LIMIT:=1200}"
: "${TESTS_UNDER:=}" "${UNIT_WRAPPER:=}" "${FINDINGS:=}" "${JOBS:=}" "${CONCLUSION:=}" "${TEST:=}" "${KNOWN_SKIPS:=}"
# Most tests wait for most of their time; what is watched computes.
files_per_processor=8
[ -z "$TESTS_UNDER" ] || files_per_processor=2
[ -n "$JOBS" ] || JOBS=$(($(nproc) * files_per_processor))
RLOCK_BIN=$(realpath "$RLOCK_BIN")
[ "${RLOCK_BIN##*/}" = rlock ] || {
	echo "run.sh: the program under test must be called rlock, not '$RLOCK_BIN'" >&2
	exit 64
}
# gcc's address sanitizer does not bear the widest randomisation of addresses that kernels offer.
if [ "$TESTS_UNDER" = sanitize ] && [ -z "${UNRANDOMISED-}" ] && setarch -R true 2>/dev/null; then
	UNRANDOMISED=yes exec setarch -R "$0" "$@"
fi
# Nor does what looks for leaks bear a process that comes before all others: it yields in a loop until a helper of its own
# has run, which does not come first.
if [ "$TESTS_UNDER" = sanitize ] && setpriv --bounding-set=-sys_nice true 2>/dev/null && chrt --rr 1 true 2>/dev/null; then
	exec setpriv --bounding-set=-sys_nice "$0" "$@"
fi

if [ $# -eq 0 ]; then
	# shellcheck disable=SC2086
	set -- ${FILES:-build/unit-tests tests/bats/*.bats}
fi

# What the caller has set up for its own locks, or make for its own children, is none of the tests'
# business.
keep=$RLOCK_BIN long=${RLOCK_LONG_TESTS-}
unset "${!RLOCK_@}" CI_JOB_URL "${!BUILDKITE_@}" "${!CIRCLE_@}" BUILD_URL "${!GITHUB_@}" REDISCLI_AUTH MAKEFLAGS MFLAGS MAKELEVEL
tools=$(realpath -m "$TOOLS_DIR")
export RLOCK_BIN=$keep RLOCK_LONG_TESTS=$long PATH=${keep%/*}:$tools:$PATH
# Where bash looks for the builtins of tests/lib.
export BASH_LOADABLES_PATH=$tools
export TESTS_UNDER LC_ALL=C.UTF-8

work=$(mktemp -d)
export XDG_CONFIG_HOME=$work/config
# Ports that a test has chosen.
export CLAIMED_PORTS=$work/ports
# Before the scripts with which some choose among several, and which take longer than most tests.
mkdir "$work/bin"
! python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || ln -s "$python" "$work/bin/python3"
PATH=$work/bin:$PATH
if [ -n "$FINDINGS" ]; then
	rm -rf "$FINDINGS"
	mkdir -p "$FINDINGS"
	FINDINGS=$(realpath "$FINDINGS")
	# Whatever user a test turns into may have something to report.
	chmod 1777 "$FINDINGS"
	export ASAN_OPTIONS=detect_leaks=1:exitcode=99:log_path=$FINDINGS/address
	export UBSAN_OPTIONS=print_stacktrace=1:exitcode=99:log_path=$FINDINGS/undefined
fi

declare -A running=() # pid to index
stop() {
	[ ${#running[@]} -eq 0 ] || kill "${!running[@]}" 2>/dev/null || :
	rm -rf "$work"
}
trap stop EXIT
trap 'exit 143' HUP INT TERM

files=("$@") statuses=() passed=0 failed=0 skipped=0 shown=0
# shellcheck disable=SC2086
mapfile -t known_skips < <([ -z "$KNOWN_SKIPS" ] || grep -hv -e '^#' -e '^$' $KNOWN_SKIPS)

# begin INDEX: a job that the shell puts into the background ignores SIGINT and SIGQUIT, and so would
# all the tests: what rlock makes of a signal depends on what it finds.
begin() {
	local command
	# shellcheck disable=SC2206
	command=($UNIT_WRAPPER "${files[$1]}")
	[[ ${files[$1]} != *.bats ]] ||
		command=("$BATS" --tap ${TRACE:+--timing} ${TEST:+--filter "$TEST"} --print-output-on-failure "${files[$1]}")
	env --default-signal timeout --kill-after=10 "$LIMIT" "${command[@]}" >"$work/$1" 2>&1 </dev/null &
	running[$!]=$1
}

# count FILE: "passed failed skipped". A file without a test has failed, unless TEST chooses among its tests. A test that was planned and never reported has failed.
count() {
	awk -v may_be_empty="${TEST:+1}" '
		/^ok [0-9]/ { if (/# [Ss][Kk][Ii][Pp]/) skipped++; else passed++ }
		/^not ok [0-9]/ { failed++ }
		/^1\.\.[0-9]+/ { has_plan = 1; planned = substr($1, 4) + 0 }
		END {
			missing = planned - passed - failed - skipped
			failed += !has_plan || planned == 0 && !may_be_empty ? 1 : missing > 0 ? missing : 0
			print passed + 0, failed + 0, skipped + 0
		}' "$1"
}

# unknown_skips FILE OUTPUT: prints the skips that no line of KNOWN_SKIPS allows.
unknown_skips() {
	local test reason known
	while IFS=$'\t' read -r test reason; do
		for known in "${known_skips[@]}"; do
			# shellcheck disable=SC2053
			[[ "$1: $reason" != $known ]] || continue 2
		done
		printf '%s: skipped, and no list of known skips says so: %s: %s\n' "$1" "$test" "$reason"
	done < <(sed -nE 's/^ok [0-9]+ (.*) # [Ss][Kk][Ii][Pp]( in [0-9]+m?s)? ?(.*)$/\1\t\3/p' "$2")
}

# how_to_repeat FILE OUTPUT: prints a command for each test that failed, and the seed that the test has printed.
how_to_repeat() {
	local name target=check
	case $1 in
	tests/bats/* | */unit-tests) ;;
	tests/release/*) target=check-release ;;
	*) return 0 ;;
	esac
	[[ $1 = *.bats ]] || echo "  make $target FILES=$1"
	{ grep -E '^not ok' "$2" || :; } | sed -E 's/^not ok [0-9]+ (- )?//; s/ in [0-9]+m?s$//' | while IFS= read -r name; do
		# Make, the shell and regular expressions have a use for most other characters, and bats may have escaped them.
		[[ $1 != *.bats ]] || echo "  make $target FILES=$1 TEST='^${name//[^A-Za-z0-9 ,:;_-]/.*}\$\$'"
	done
	# By "# seed: VARIABLE=VALUE" a test says with which variable it makes the same choices again.
	sed -nE 's/^# ?seed: ([A-Z_]+=[0-9]+)$/  the same choices again: with \1 before it/p' "$2" | sort -u
}

# show INDEX: print a file's output and add it up.
show() {
	local file=${files[$1]} p f s unknown
	printf '\n== %s\n' "$file"
	# The unit tests make thousands of small checks; a bats file, some that are sentences worth reading.
	case $file in
	*.bats) cat "$work/$1" ;;
	*) grep -v '^ok ' "$work/$1" || : ;;
	esac
	read -r p f s < <(count "$work/$1")
	case ${statuses[$1]} in
	0) ;;
	124) echo "# $file was stopped after $LIMIT s" ;;
	*) echo "# $file: exit status ${statuses[$1]}" ;;
	esac
	[ "${statuses[$1]}" -eq 0 ] || [ "$f" -gt 0 ] || f=1
	unknown=$([ -z "$KNOWN_SKIPS" ] || unknown_skips "$file" "$work/$1")
	[ -z "$unknown" ] || f=$((f + $(wc -l <<<"$unknown")))
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	[ "$f" -eq 0 ] || {
		echo "$file: $f failed"
		grep '^not ok' "$work/$1" || :
		[ -z "$unknown" ] || echo "$unknown"
	} >>"$work/failures"
	[ "$f" -eq 0 ] || how_to_repeat "$file" "$work/$1" >>"$work/repeat"
}

# turn_of FILE: prints which files begin before which.
turn_of() {
	case $(sed -n 's/^# bats file_tags=//p' "$1") in
	*long*) echo 1 ;;
	*computes*) echo 2 ;;
	*alone*) echo 4 ;;
	*) echo 3 ;;
	esac
}

# In turn, and the larger first among those that have the same, so that no processor is left without work at the end.
mapfile -t order < <(
	for index in "${!files[@]}"; do
		echo "$(turn_of "${files[$index]}") $(stat -c %s "${files[$index]}") $index"
	done | sort -k 1,1n -k 2,2nr
)
for next in "${order[@]}" end; do
	case $next in
	end) limit=0 ;;
	4*) limit=1 ;;
	*) limit=$JOBS ;;
	esac
	while [ ${#running[@]} -gt 0 ] && [ ${#running[@]} -ge "$limit" ]; do
		status=0
		wait -n -p pid || status=$?
		statuses[${running[$pid]}]=$status
		unset "running[$pid]"
		while [ -n "${statuses[$shown]-}" ]; do
			show "$shown"
			shown=$((shown + 1))
		done
	done
	[ "$next" = end ] || begin "${next##* }"
done

# What tests have left running would take the processor from all that follows.
left_running() {
	local pids
	pids=$(grep -lsFz "CLAIMED_PORTS=$CLAIMED_PORTS" /proc/[0-9]*/environ | tr -dc '0-9\n' | paste -sd ,)
	[ -n "$pids" ] && ps -o pid=,args= -p "$pids"
}

end=$((SECONDS + 10))
while left=$(left_running) && [ "$SECONDS" -lt "$end" ]; do read -rt 0.2 <> <(:) || :; done
while read -r pid line; do
	echo "left running by a test: $line" >>"$work/failures"
	kill -KILL "$pid" || :
	failed=$((failed + 1))
done < <(printf %s "${left:+$left$'\n'}")

echo
[ ! -e "$work/failures" ] || cat "$work/failures"
[ ! -s "$work/repeat" ] || { echo 'to run what failed alone:' && cat "$work/repeat"; }
if [ -n "$FINDINGS" ]; then
	# A process that a test kills while it looks for its leaks makes the looker say this, and no more.
	killed='^==[0-9]+==Unable to get registers from thread [0-9]+\.$'
	while IFS= read -r finding; do
		grep -qvE "$killed" "$finding" || continue
		echo "-- $finding"
		cat "$finding"
		failed=$((failed + 1))
	done < <(find "$FINDINGS" -type f -size +0)
fi
# shellcheck disable=SC2086
[ -z "$CONCLUSION" ] || $CONCLUSION
summary="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || summary="$summary, $skipped skipped"
echo "$summary"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
