#!/usr/bin/env bash
# Runs test files that print TAP, several at a time; prints the output of each, in order, and the sums.
#
#   tests/run.sh [FILE...]     *.bats or programs; by default $FILES, else all
#
#   RLOCK_BIN      the rlock under test, first in the tests' PATH (build/rlock)
#   TOOLS_DIR      the tests' own programs, second in the PATH, and their builtins of bash (build/tools)
#   BATS, JOBS     the bats to use, and how many files at a time (see below)
#   LIMIT          seconds after which a file is killed, as it hangs (1200); files need more time on a busy machine
#   TESTS_UNDER    "sanitize" or "valgrind", for tests that depend on it; else empty
#   UNIT_WRAPPER   precedes the command line of each program
#   FINDINGS       a directory: each file that appears in it is a failure, and is printed
#   CONCLUSION     a command whose output is printed before the sums
#   TEST           only the tests of bats whose names match this regular expression
#   KNOWN_SKIPS    files of lines "FILE: REASON", both patterns of the shell: a test that is skipped for another reason
#                  has failed. Lines that begin with # are comments
#   TRACE          not empty: print the time of each test, and for a failed one the lines of its helpers
#
# Tags in a file ("# bats file_tags=long") set its order:
#
#   long           starts first
#   computes       needs processor time, and no exact times; starts next, to use the processors while others wait
#   alone          starts last, when no other file runs
set -euo pipefail
cd "$(dirname "$0")/.."

: "${RLOCK_BIN:=build/rlock}" "${TOOLS_DIR:=build/tools}" "${BATS:=bats}" "${LIMIT:=1200}"
: "${TESTS_UNDER:=}" "${UNIT_WRAPPER:=}" "${FINDINGS:=}" "${JOBS:=}" "${CONCLUSION:=}" "${TEST:=}" "${KNOWN_SKIPS:=}"
# Most tests mostly wait, so run eight files per processor. Under valgrind or sanitizers, which compute, run only two.
files_per_processor=8
[ -z "$TESTS_UNDER" ] || files_per_processor=2
[ -n "$JOBS" ] || JOBS=$(($(nproc) * files_per_processor))
RLOCK_BIN=$(realpath "$RLOCK_BIN")
[ "${RLOCK_BIN##*/}" = rlock ] || {
	echo "run.sh: the program under test must be called rlock, not '$RLOCK_BIN'" >&2
	exit 64
}
# gcc's address sanitizer fails with the widest address space randomisation of the kernel.
if [ "$TESTS_UNDER" = sanitize ] && [ -z "${UNRANDOMISED-}" ] && setarch -R true 2>/dev/null; then
	UNRANDOMISED=yes exec setarch -R "$0" "$@"
fi
# Forbid real-time priorities: in a process with such a priority the leak sanitizer hangs, since it yields in a loop until a
# helper has run which lacks this priority.
if [ "$TESTS_UNDER" = sanitize ] && setpriv --bounding-set=-sys_nice true 2>/dev/null && chrt --rr 1 true 2>/dev/null; then
	exec setpriv --bounding-set=-sys_nice "$0" "$@"
fi

if [ $# -eq 0 ]; then
	# shellcheck disable=SC2086
	set -- ${FILES:-build/unit-tests tests/bats/*.bats}
fi

# Unset the variables that the caller has set for its own locks, and those that make has set for its children.
keep=$RLOCK_BIN long=${RLOCK_LONG_TESTS-}
unset "${!RLOCK_@}" CI_JOB_URL "${!BUILDKITE_@}" "${!CIRCLE_@}" BUILD_URL "${!GITHUB_@}" REDISCLI_AUTH MAKEFLAGS MFLAGS MAKELEVEL
tools=$(realpath -m "$TOOLS_DIR")
export RLOCK_BIN=$keep RLOCK_LONG_TESTS=$long PATH=${keep%/*}:$tools:$PATH
# bash loads the builtin ask_redis from here, which tests/lib uses.
export BASH_LOADABLES_PATH=$tools
export TESTS_UNDER LC_ALL=C.UTF-8

work=$(mktemp -d)
export XDG_CONFIG_HOME=$work/config
# Marks all processes of this run, and owns the ports that its tests have chosen: see choose_port.
export TEST_RUN=$$ TEST_RUN_DIR=$work
# Find the real python3 first: a wrapper script that selects a version (pyenv) takes longer than most tests.
mkdir "$work/bin"
! python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || ln -s "$python" "$work/bin/python3"
PATH=$work/bin:$PATH
if [ -n "$FINDINGS" ]; then
	rm -rf "$FINDINGS"
	mkdir -p "$FINDINGS"
	FINDINGS=$(realpath "$FINDINGS")
	# Let all users write to it: tests run programs as other users, and these can have findings as well.
	chmod 1777 "$FINDINGS"
	export ASAN_OPTIONS=detect_leaks=1:exitcode=99:log_path=$FINDINGS/address
	export UBSAN_OPTIONS=print_stacktrace=1:exitcode=99:log_path=$FINDINGS/undefined
fi

declare -A running=() # pid to index
stop() {
	[ ${#running[@]} -eq 0 ] || kill "${!running[@]}" 2>/dev/null || :
	rm -rf "$work"
	find /tmp/rlock-test-ports -maxdepth 1 -lname "$TEST_RUN" -delete 2>/dev/null || :
}
trap stop EXIT
trap 'exit 143' HUP INT TERM

files=("$@") statuses=() passed=0 failed=0 skipped=0 shown=0
# shellcheck disable=SC2086
mapfile -t known_skips < <([ -z "$KNOWN_SKIPS" ] || grep -hv -e '^#' -e '^$' $KNOWN_SKIPS)

# begin INDEX: starts a file. A background job of the shell ignores SIGINT and SIGQUIT, which rlock would inherit: reset both.
begin() {
	local command
	# shellcheck disable=SC2206
	command=($UNIT_WRAPPER "${files[$1]}")
	[[ ${files[$1]} != *.bats ]] ||
		command=("$BATS" --tap ${TRACE:+--timing} ${TEST:+--filter "$TEST"} --print-output-on-failure "${files[$1]}")
	env --default-signal timeout --kill-after=10 "$LIMIT" "${command[@]}" >"$work/$1" 2>&1 </dev/null &
	running[$!]=$1
}

# count FILE: prints "passed failed skipped". A file without a test has failed, unless TEST selects tests. A test that was planned but
# not reported has failed.
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

# unknown_skips FILE OUTPUT: prints a line for each skipped test that no line of KNOWN_SKIPS allows.
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

# how_to_repeat FILE OUTPUT: prints a command that repeats each failed test, and the seed that the test has printed.
how_to_repeat() {
	local name target=check
	case $1 in
	tests/bats/* | */unit-tests) ;;
	tests/release/*) target=check-release ;;
	*) return 0 ;;
	esac
	[[ $1 = *.bats ]] || echo "  make $target FILES=$1"
	{ grep -E '^not ok' "$2" || :; } | sed -E 's/^not ok [0-9]+ (- )?//; s/ in [0-9]+m?s$//' | while IFS= read -r name; do
		# Replace all but plain characters by ".*": the others are special to make, the shell or regular expressions, or
		# bats has escaped them.
		[[ $1 != *.bats ]] || echo "  make $target FILES=$1 TEST='^${name//[^A-Za-z0-9 ,:;_-]/.*}\$\$'"
	done
	# "# seed: VARIABLE=VALUE" in the output: with this variable the test makes the same choices again.
	sed -nE 's/^# ?seed: ([A-Z_]+=[0-9]+)$/  the same choices again: with \1 before it/p' "$2" | sort -u
}

# show INDEX: prints the output of a file, and adds its counts to the sums.
show() {
	local file=${files[$1]} p f s unknown
	printf '\n== %s\n' "$file"
	# Do not print the passed checks of programs, which are thousands.
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

# turn_of FILE: prints a number by its tags. Files with a smaller number start earlier; those with 4 run alone.
turn_of() {
	case $(sed -n 's/^# bats file_tags=//p' "$1") in
	*long*) echo 1 ;;
	*computes*) echo 2 ;;
	*alone*) echo 4 ;;
	*) echo 3 ;;
	esac
}

# Of files with the same number the larger ones start first, so that all processors have work until the end.
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

# left_running: prints the processes that tests have left running. Such a process counts as a failure, since it would slow down
# other tests.
left_running() {
	local pids
	pids=$(grep -lsFz "TEST_RUN_DIR=$TEST_RUN_DIR" /proc/[0-9]*/environ | tr -dc '0-9\n' | paste -sd ,)
	[ -n "$pids" ] && ps -o pid=,stat=,wchan=,etime=,args= -p "$pids"
}

end=$((SECONDS + 30))
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
	# If a test kills a process during the leak check, the sanitizer prints only this line, which is no finding.
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
