# Run a scenario: many cells at the same time, each with a lock and a fault of its own. Record the facts of each cell, check what must be
# true after it, and print a row of the table. Sourced by every tests/chaos/*.bats.
#
#   SCALE         number of repetitions, as a multiple of what CI does (1); 0.1 for a quick check
#   CHAOS_TABLE   the rows of the table are appended to this file

# The scenarios use the variable KINDS, and those that in_cell sets.

load ../lib/usual

# The commands that other tests use as well, such as `overlap`.
PATH=$BATS_TEST_DIRNAME/../bin:$PATH

KINDS=(plain fair read write)

# verb_of KIND
verb_of() {
	case $1 in
	plain) echo run ;;
	read) echo rlock ;;
	write) echo wlock ;;
	*) echo "$1" ;;
	esac
}

# verb_without_command KIND
verb_without_command() {
	verb_of "$1" | sed 's/^run$/lock/'
}

# mode_of KIND: prints the mode that a command of this kind passes to `overlap`.
mode_of() {
	[ "$1" = read ] && echo shared || echo exclusive
}

# excluded_kind KIND: prints a kind whose calls must wait while a lock of this kind is held.
excluded_kind() {
	[ "$1" = read ] && echo write || echo "$1"
}

# opposite_kind KIND: like excluded_kind, but prints "read" for a write lock.
opposite_kind() {
	case $1 in
	write) echo read ;;
	*) excluded_kind "$1" ;;
	esac
}

# scaled COUNT: prints COUNT times SCALE, rounded, at least 1.
scaled() {
	awk -v count="$1" -v scale="${SCALE:-1}" 'BEGIN { count = int(count * scale + 0.5); print count < 1 ? 1 : count }'
}

# ---- the record of a scenario: one line for each fact ----

# begin_scenario NAME: begins the record of a scenario. NAME is its name in the table and in README.md.
begin_scenario() {
	SCENARIO=$1 RECORD=$BATS_TEST_TMPDIR/record
	: >"$RECORD"
}

# repeated [COUNT]: records that the guarantee was tested COUNT times (1).
repeated() {
	echo "repetition ${1:-1}" >>"$RECORD"
}

# injected [COUNT]: records COUNT faults (1). Call it only when the faults have happened, not when they were requested.
injected() {
	echo "fault ${1:-1}" >>"$RECORD"
}

# violated TEXT: records that the guarantee did not hold. The variable WHERE describes the cell.
violated() {
	VIOLATIONS=$((VIOLATIONS + 1))
	echo "violation ${SCENARIO%%,*}: $1${WHERE:+ ($WHERE)}" >>"$RECORD"
}

# must TEXT COMMAND [ARG...]: runs COMMAND. If COMMAND fails, records the violation TEXT, with the output. Always succeeds.
must() {
	local heard
	heard=$("${@:2}" 2>&1) || violated "$1${heard:+: ${heard//$'\n'/; }}"
}

# took MS: records a duration that the scenario measures. end_scenario reports the worst one.
took() {
	echo "time $1" >>"$RECORD"
}

# broke TEXT: records that the cell itself did not work, and so shows nothing about the guarantee. The scenario then fails.
broke() {
	echo "broken $1${WHERE:+ ($WHERE)}" >>"$RECORD"
}

# end_scenario [WHAT]: writes the record as a row of the table. Fails if a guarantee did not hold, or if a cell broke. WHAT
# describes the durations that `took` has recorded. The worst one is the longest, or the shortest if WHAT begins with "left". A
# scenario without faults sets WITHOUT_FAULTS.
end_scenario() {
	local row cell
	# Find cells that ended early without a message, for example by an arithmetic error of the shell.
	while read -r cell; do
		broke "cell $cell did not come to its end"
	done < <(awk '$1 == "begins" { open[$2]++ } $1 == "ends" { open[$2]-- } END { for (cell in open) if (open[cell]) print cell }' "$RECORD")
	row=$(awk -v name="$SCENARIO" -v what="${1-}" '
		$1 == "repetition" { repetitions += $2 }
		$1 == "fault" { faults += $2 }
		$1 == "violation" { violations++ }
		$1 == "time" && (!times++ || (what ~ /^left/ ? $2 < worst : $2 > worst)) { worst = $2 }
		END { printf "%s|%d|%d|%d|%s", name, repetitions, faults, violations, times ? worst " ms " what : "" }' "$RECORD")
	echo "$row" >>"${CHAOS_TABLE:-/dev/null}"
	echo "# $row" >&3
	grep -E '^(violation|broken) ' "$RECORD" | sort | uniq -c | sort -rn | head -n 40 || :
	grep -q '^repetition [1-9]' "$RECORD" || fail 'nothing was put to the test'
	[ -n "${WITHOUT_FAULTS-}" ] || grep -q '^fault [1-9]' "$RECORD" || fail 'no fault happened'
	! grep -qE '^(violation|broken) ' "$RECORD"
}

# scenario NAME WHAT COUNT WIDTH FUNCTION [ARG...]: runs a scenario of COUNT cells, WIDTH at a time.
scenario() {
	begin_scenario "$1"
	in_cells "$(scaled "$3")" "${@:4}"
	end_scenario "$2"
}

# scenario_of_kinds NAME WHAT COUNT WIDTH FUNCTION [ARG...]: runs one scenario for each kind of lock. FUNCTION gets the kind as its last
# argument.
scenario_of_kinds() {
	local kind
	for kind in "${KINDS[@]}"; do
		scenario "$1, $kind" "${@:2}" "$kind"
	done
}

# ---- cells ----

# in_cells COUNT WIDTH FUNCTION [ARG...]: calls FUNCTION NUMBER ARG... COUNT times, each in a cell, WIDTH at a time.
in_cells() {
	BATCH=$((${BATCH:-0} + 1))
	(
		for ((number = 1; number <= $1; number++)); do
			((number <= $2)) || wait -n || :
			in_cell "$number" "${@:3}" &
		done
		wait
	)
}

# in_cell NUMBER FUNCTION [ARG...]: calls FUNCTION with a directory, a runtime directory and a lock of its own. SEED is the seed
# of the cell's random numbers. If FUNCTION succeeds, calls nothing_is_left; if it fails, the cell is broken, unless the machine
# stood still. At the end kills all processes that the cell left running.
in_cell() {
	# Switch off the trap that bats runs before each command: it would take as much time as all else in a cell.
	trap - DEBUG
	SEED=$RANDOM
	RANDOM=$SEED
	WHERE="cell $1, seed $SEED"
	echo "begins $BATCH.$1" >>"$RECORD"
	# End the name with a letter, so that no cell's name is the beginning of another one: on_server then finds only the cell's
	# own keys.
	NAME=lock.$BATCH.${1}x
	CELL=$BATS_TEST_TMPDIR/$NAME
	# Helpers put their files into this directory, and `list_test_processes` finds the cell's processes by it.
	export BATS_TEST_TMPDIR=$CELL RLOCK_RUNTIME_DIR=$CELL/run
	LEDGER=$CELL/ledger
	BACKGROUND=() CLOCK=() VIOLATIONS=0 SINCE_US=$(now_us)
	mkdir -p "$CELL"
	cd "$CELL" || return
	if "$2" "$1" "${@:3}" >cell-stderr 2>&1; then
		nothing_is_left >>cell-stderr 2>&1
	else
		unless_stalled "$SINCE_US" broke "${*:2}: $(tail -qn 3 cell-stderr stderr-* 2>/dev/null | paste -s -d ';')"
	fi
	end_cell
	rm -rf "$CELL"
	echo "ends $BATCH.$1" >>"$RECORD"
}

# end_cell: kills all processes that the cell has started. They are found by the cell's directory in their environments. A server
# overwrites its environment, so it is stopped separately.
end_cell() {
	local pid
	end_commands
	for pid in $(processes_of_test | cut -d ' ' -f 1); do
		[ "$pid" = "$BASHPID" ] || kill -KILL "$pid" 2>/dev/null || :
	done
	[[ $SERVER_DIR != "$CELL"/* ]] || stop_server
	wait
}

# nothing_is_left: records a violation if two commands that exclude each other were inside at the same time, if one is still inside, if a
# process of rlock runs, or if a key, subscriber or file of the cell's lock is left. A cell can allow exceptions: MAY_OVERLAP,
# MAY_LEAVE_FILES, KEPT (a pattern of keys that stay), and LEFT_WITHIN_S (seconds in which the keys must disappear).
nothing_is_left() {
	local mark line
	for mark in *.mark; do
		[ -e "$mark" ] || continue
		must "inside ${mark%.mark} still" overlap -g "${mark%.mark}" 3000
		[ -z "${MAY_OVERLAP-}" ] || continue
		while IFS= read -r line; do
			violated "two inside: $line"
		done < <(grep ' overlap ' "${mark%.mark}")
	done
	wait_until 10 no_rlock_runs || violated "runs on: $(processes_of_test | paste -s -d ' ')"
	! server_answers || wait_until "${LEFT_WITHIN_S:-15}" nothing_is_on_server || violated "on the server: $(on_server | paste -s -d ' ')"
	[ -n "${MAY_LEAVE_FILES-}" ] || ! compgen -G "$RLOCK_RUNTIME_DIR/*" || violated "left on disk: $(ls "$RLOCK_RUNTIME_DIR")"
}

# on_server: prints the keys and channels of the cell's lock.
on_server() {
	{ redis keys "*$NAME*" && redis pubsub channels "*$NAME*"; } | grep -vxE "(${KEPT-})?"
}

nothing_is_on_server() {
	! on_server >/dev/null
}

# ---- random choices ----

# draw MIN MAX: sets DRAWN to a random number. Never call it in a subshell: bash gives a subshell random numbers that the seed does not
# decide, so the cell could not be repeated.
draw() {
	DRAWN=$(($1 + RANDOM * ($2 - $1 + 1) / 32768))
}

# choose ARG...: sets CHOSEN to one of the arguments, at random.
choose() {
	draw 1 $#
	CHOSEN=${!DRAWN}
}

# shuffle ARG...: sets the array SHUFFLED to the arguments in a random order.
shuffle() {
	SHUFFLED=()
	while (($#)); do
		choose "$@"
		SHUFFLED+=("$CHOSEN")
		set -- "${@:1:DRAWN-1}" "${@:DRAWN+1}"
	done
}

# ---- time ----

# let_pass_ms MS: waits that long.
let_pass_ms() {
	local seconds
	to_seconds seconds $(($1 * 1000))
	pause_for "$seconds"
}

# let_some_pass MS: waits for a random time, at most MS. Sets DRAWN to that time.
let_some_pass() {
	draw 0 "$1"
	let_pass_ms "$DRAWN"
}

# spin US: waits by a busy loop: a sleep is not this precise.
spin() {
	local end=$((${EPOCHREALTIME/./} + $1))
	while ((${EPOCHREALTIME/./} < end)); do :; done
}

# now_us: prints the time in microseconds on CLOCK_BOOTTIME, the clock of the ledgers.
now_us() {
	gone 0
}

# lease_end_us: prints when the lease of the cell's lock ends on the server; of a semaphore, the first lease of a permit. The time
# is on the clock of the ledgers. It may be slightly too early, but never too late. 0: there is no lease.
lease_end_us() {
	local at_us left_ms
	at_us=$(now_us)
	left_ms=$(redis eval 'local now = redis.call("time")
		local first = redis.call("zrange", KEYS[2], 0, 0, "withscores")[2]
		return first and first - now[1] * 1000 - math.floor(now[2] / 1000) or redis.call("pttl", KEYS[1])
		' 2 "$NAME" "rlock_ends:{$NAME}")
	echo $((left_ms > 0 ? at_us + left_ms * 1000 : 0))
}

# look_until_gone LIMIT_MS: waits until no process is inside. Sets SEEN_US, the last time at which a process was seen inside.
# Fails, and records a violation, if a process is still inside after LIMIT_MS.
look_until_gone() {
	SEEN_US=$(overlap -G "$LEDGER" "$1") || {
		violated 'inside long behind the end'
		return 1
	}
}

# was_gone_by END_US [LATE_US]: call it after look_until_gone. Records how long before END_US the last process was seen inside. It
# is a violation if that was at END_US + LATE_US or later, unless the machine stood still.
was_gone_by() {
	took $((($1 - SEEN_US) / 1000))
	((SEEN_US < $1 + ${2:-0})) || late_since "$SINCE_US" "inside $(((SEEN_US - $1) / 1000)) ms behind the end"
}

# If the machine wakes the metronome later than this, rlock could not run in time either. A cell that is late at such a moment is
# excused.
STALL_MS=40

# start_metronome and stop_metronome: a file whose cells are excused by stalls of the machine calls them in setup_file and
# teardown_file.
start_metronome() {
	"$TOP/tests/bin/metronome" 5 "$STALL_MS" >"$BATS_FILE_TMPDIR/stalls" 3>&- &
	export METRONOME=$!
}

stop_metronome() {
	kill "$METRONOME"
}

# runs_smoothly_since US: whether the metronome has found no stall since the time US, or was not started.
runs_smoothly_since() {
	[ -z "${METRONOME-}" ] || awk -v since="$1" '$1 > since { stalls++ } END { exit (stalls > 0) }' "$BATS_FILE_TMPDIR/stalls"
}

# unless_stalled US VERB TEXT: calls VERB ("violated" or "broke") with TEXT. If the machine stood still since US, prints a line to the log
# instead.
unless_stalled() {
	if runs_smoothly_since "$1"; then
		"${@:2}"
	else
		echo "# the machine stood still meanwhile: $3 ($WHERE)" >&3
	fi
}

# late_since US TEXT: records the violation TEXT, unless the machine stood still since US.
late_since() {
	unless_stalled "$1" violated "$2"
}

# ---- contenders ----

# start_contender CONTENDER KIND LEDGER STAY [OPTION...]: starts an rlock in the background, which acquires the cell's lock for
# the command `overlap` with the options STAY. Its messages go to the file "stderr-CONTENDER". Sets PID. If STAY begins with
# "until", `overlap` stays until `finish_contender CONTENDER`; the rest of STAY are further options of `overlap`.
start_contender() {
	local stay=${4/#until/-u $CELL/leave-$1}
	# shellcheck disable=SC2086
	in_background sh -c 'exec "$@" 2>"$0"' "$CELL/stderr-$1" \
		"${CLOCK[@]}" rlock "$(verb_of "$2")" "${@:5}" "$NAME" -- overlap "$3" "$(mode_of "$2")" $stay
}

# start_holder_family CONTENDER KIND LEDGER [OPTION...]: as start_contender, for a command whose children are hard to stop (see
# `overlap -C`) and which stays until finish_contender. Sets HOLDER. Returns when the command and all its children are inside.
start_holder_family() {
	start_contender "$1" "$2" "$3" 'until -C' "${@:4}"
	HOLDER=$PID
	wait_until 30 all_inside "$3" "$FAMILY_SIZE"
}

# finish_contender CONTENDER: ends the command of a contender that was started with "until".
finish_contender() {
	: >"$CELL/leave-$1"
}

# inside LEDGER: prints the pids of all processes that went in, also of those that have left.
inside() {
	sed -nE 's/^[0-9]+ (enter|child) [a-z]+ ([0-9]+)$/\2/p' "$1" 2>/dev/null
}

# all_inside LEDGER COUNT: whether exactly COUNT processes have gone in, including children of commands.
all_inside() {
	[ "$(inside "$1" | wc -l)" = "$2" ]
}

# entered COUNT [LEDGER]: whether exactly COUNT commands have gone in, not counting their children.
entered() {
	[ "$(times enter "${2:-$LEDGER}" | wc -l)" = "$1" ]
}

# times EVENT [LEDGER]: prints the times at which this event happened, in microseconds, one a line.
times() {
	sed -n "s/ $1 .*//p" "${2:-$LEDGER}" 2>/dev/null
}

# is_well LEDGER: whether a process is inside, and the lock is held.
is_well() {
	! overlap -g "$1" 0 >/dev/null && is_held "$NAME"
}

# is_excluded KIND: whether the lock is held by a hold of this kind: a call of a kind that such a hold excludes finds the lock
# busy.
is_excluded() {
	local status=0
	rlock "$(verb_of "$(excluded_kind "$1")")" -n "$NAME" -- true || status=$?
	[ "$status" = 75 ]
}

# all_commands_run: whether every process that went in still runs.
all_commands_run() {
	local pid
	for pid in $(inside "$LEDGER"); do
		is_running "$pid" || return
	done
}

# must_keep_lock KIND MIN_MS MAX_MS: call it after a fault. Waits for a random time from MIN_MS to MAX_MS. Then the lock must
# still be held, and all processes of its command must run.
must_keep_lock() {
	injected 1
	repeated 1
	draw "$2" "$3"
	let_pass_ms "$DRAWN"
	must 'the lock was not kept' is_excluded "$1"
	must 'the command did not go on' all_commands_run
}

# waiting [NAME]: prints how many calls wait for the lock; default: the cell's lock.
waiting() {
	echo $(($(redis zcard "rlock_queue:{${1:-$NAME}}") + $(redis llen "redisson_lock_queue:{${1:-$NAME}}")))
}

# listen COUNT [NAME]: whether at least COUNT calls wait for the lock.
listen() {
	(($(waiting "${2:-$NAME}") >= $1))
}

# said_by CONTENDER: prints its messages as one line.
said_by() {
	paste -s -d ';' "$CELL/stderr-$1" 2>/dev/null
}

# must_end STATUSES PID CONTENDER: the process must end within 30 s, with one of these statuses.
must_end() {
	local status=0
	wait_until 30 is_gone "$2" || {
		violated "$3 does not end"
		return 0
	}
	wait "$2" 2>/dev/null || status=$?
	[[ " $1 " = *" $status "* ]] || violated "$3 ended with $status, not $1: $(said_by "$3")"
}

# must_say CONTENDER [PATTERN]: the contender must have printed one line, which matches PATTERN; without PATTERN, it must have
# printed nothing.
must_say() {
	if [ $# = 1 ]; then
		[ ! -s "stderr-$1" ]
	else
		has_line_count "stderr-$1" 1 && grep -qE "^rlock: .*$2" "stderr-$1"
	fi || violated "$1 said: $(said_by "$1")"
}

# call COMMAND [ARG...]: runs COMMAND, which is killed after 30 s. Sets STATUS, and SAID to the lines of its messages. Records how
# long it took, less OWN_MS, the time that it needs even without a fault. If the difference is more than CALL_LIMIT_MS, that is a
# violation.
call() {
	local start=${EPOCHREALTIME/./} ms
	STATUS=0
	timeout --foreground -s KILL 30 "$@" 2>stderr 3>&- || STATUS=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000 - ${OWN_MS:-0}))
	took $((ms > 0 ? ms : 0))
	((ms <= ${CALL_LIMIT_MS:-8000})) || violated "$* took $ms ms"
	mapfile -t SAID <stderr
}

# must_tell GOOD SAYS [BAD]: judges the last `call`. If its STATUS is one of GOOD, it must have printed one line that matches
# SAYS, or nothing if SAYS is empty. If its STATUS is one of BAD, it must have printed one line, which matches the variable SAYS
# if that is set. Any other STATUS is a violation. With IS_DEAF the line may be missing: the call had no working standard error.
must_tell() {
	local told="status $STATUS, said: ${SAID[*]-}" says=${SAYS-}
	if [[ " $1 " = *" $STATUS "* ]]; then
		says=$2
	else
		[[ " ${3-} " = *" $STATUS "* ]] || violated "none of $*: $told"
		says=${says:-.}
	fi
	if [ -z "$says" ]; then
		((${#SAID[@]} == 0)) || violated "said something: $told"
	else
		((${#SAID[@]} == 1)) && [[ ${SAID[0]} =~ ^rlock:\ .*$says ]] || [ -n "${IS_DEAF-}" ] || violated "not one line: $told"
	fi
}

# calls STATUSES COMMAND [ARG...]: runs COMMAND, which must end with one of STATUSES. If it fails, it must print one line; if it
# succeeds, nothing.
calls() {
	call "${@:2}"
	must_tell 0 '' "$1"
	[[ " $1 " = *" $STATUS "* ]] || violated "${*:2} ended with $STATUS, not $1"
}
