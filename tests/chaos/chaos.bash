# What the scenarios share: cells, each with one fault, side by side; what is put on record of them; what has to be true after each;
# and a row of the table. Sourced by every tests/chaos/*.bats.
#
#   SCALE         how many repetitions, as a multiple of what CI does (1); 0.1 for a quick look
#   CHAOS_TABLE   the rows of the table are appended to this file

# What in_cell sets, and KINDS, are for the scenarios.

load ../lib/usual

# The commands of the other tests.
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

# mode_of KIND: what `overlap` calls it.
mode_of() {
	[ "$1" = read ] && echo shared || echo exclusive
}

# excluded_kind KIND: the kind that this one keeps out.
excluded_kind() {
	[ "$1" = read ] && echo write || echo "$1"
}

# opposite_kind KIND: the same, and of the two sorts of a read/write lock the other one.
opposite_kind() {
	case $1 in
	write) echo read ;;
	*) excluded_kind "$1" ;;
	esac
}

# scaled COUNT: so many at the scale that is asked for, one at least.
scaled() {
	awk -v count="$1" -v scale="${SCALE:-1}" 'BEGIN { count = int(count * scale + 0.5); print count < 1 ? 1 : count }'
}

# ---- the record of a scenario: one line for each fact ----

# begin_scenario NAME: begins the record of a scenario. NAME is its name in the table and in README.md.
begin_scenario() {
	SCENARIO=$1 RECORD=$BATS_TEST_TMPDIR/record
	: >"$RECORD"
}

# repeated [COUNT]: records that the guarantee was put to the test, COUNT times.
repeated() {
	echo "repetition ${1:-1}" >>"$RECORD"
}

# injected [COUNT]: records COUNT faults. Call it when they have happened, and not when they were ordered.
injected() {
	echo "fault ${1:-1}" >>"$RECORD"
}

# violated TEXT: records that the guarantee did not hold. WHERE describes the cell.
violated() {
	VIOLATIONS=$((VIOLATIONS + 1))
	echo "violation ${SCENARIO%%,*}: $1${WHERE:+ ($WHERE)}" >>"$RECORD"
}

# must TEXT COMMAND [ARG...]: COMMAND must succeed; if it does not, TEXT is a violation. Always succeeds itself.
must() {
	local heard
	heard=$("${@:2}" 2>&1) || violated "$1${heard:+: ${heard//$'\n'/; }}"
}

# took MS: records a time that the scenario measures. end_scenario reports the worst one.
took() {
	echo "time $1" >>"$RECORD"
}

# broke TEXT: records that the cell itself did not work, so that it shows nothing about the guarantee.
broke() {
	echo "broken $1${WHERE:+ ($WHERE)}" >>"$RECORD"
}

# end_scenario [WHAT]: writes the record as a row of the table, and fails if the guarantee did not hold. WHAT says what the times are; the
# worst is the greatest one, or the smallest one if WHAT begins with "left". A scenario without faults sets WITHOUT_FAULTS.
end_scenario() {
	local row cell
	# Find cells that ended without a message, as after an arithmetic error of the shell.
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

# scenario_of_kinds NAME WHAT COUNT WIDTH FUNCTION [ARG...]: runs one scenario for each kind of lock, which FUNCTION gets as its last argument.
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

# in_cell NUMBER FUNCTION [ARG...]: calls FUNCTION with a directory, a runtime directory and a lock of its own. CHANCE is the seed of what it
# draws. After it nothing_is_left must be true, and all that it left running is killed.
in_cell() {
	# Switch off the trap of bats before each command, which would cost as much as the rest of a cell.
	trap - DEBUG
	CHANCE=$RANDOM
	RANDOM=$CHANCE
	WHERE="cell $1, chance $CHANCE"
	echo "begins $BATCH.$1" >>"$RECORD"
	# End the name with a dot, so that no name is the beginning of another.
	NAME=lock.$BATCH.$1.
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

# end_cell: kills all that the cell has started. A process has the cell's directory in its environment; a server hides that.
end_cell() {
	local pid
	end_commands
	for pid in $(processes_of_test | cut -d ' ' -f 1); do
		[ "$pid" = "$BASHPID" ] || kill -KILL "$pid" 2>/dev/null || :
	done
	[[ $SERVER_DIR != "$CELL"/* ]] || stop_server
	wait
}

# nothing_is_left: no two processes that exclude each other were inside at one time, none is inside now, nothing of rlock runs, and no key,
# subscriber or file of the cell's lock is left. A cell can allow exceptions: MAY_OVERLAP, MAY_LEAVE_FILES, KEPT (a pattern of keys that
# stay), and LEFT_WITHIN_S (seconds until the keys are gone).
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

# ---- chance ----

# draw MIN MAX: sets DRAWN to a random number. Not in a subshell, whose numbers do not follow the seed.
draw() {
	DRAWN=$(($1 + RANDOM * ($2 - $1 + 1) / 32768))
}

# choose ARG...: sets CHOSEN, one of them.
choose() {
	draw 1 $#
	CHOSEN=${!DRAWN}
}

# shuffle ARG...: sets the array SHUFFLED.
shuffle() {
	SHUFFLED=()
	while (($#)); do
		choose "$@"
		SHUFFLED+=("$CHOSEN")
		set -- "${@:1:DRAWN-1}" "${@:DRAWN+1}"
	done
}

# ---- time ----

# let_pass_ms MS
let_pass_ms() {
	local seconds
	to_seconds seconds $(($1 * 1000))
	pause_for "$seconds"
}

# let_some_pass MS: at most; sets DRAWN.
let_some_pass() {
	draw 0 "$1"
	let_pass_ms "$DRAWN"
}

# spin US: no process can sleep as sharply.
spin() {
	local end=$((${EPOCHREALTIME/./} + $1))
	while ((${EPOCHREALTIME/./} < end)); do :; done
}

# Microseconds on the clock of the ledgers, CLOCK_BOOTTIME.
now_us() {
	gone 0
}

# When the lease of the cell's lock, or of permits, ends by what the server knows now, or a moment sooner, on the clock of
# the ledgers; 0: there is none.
lease_end_us() {
	local at_us left_ms
	at_us=$(now_us)
	left_ms=$(redis eval 'local now = redis.call("time")
		local first = redis.call("zrange", KEYS[2], 0, 0, "withscores")[2]
		return first and first - now[1] * 1000 - math.floor(now[2] / 1000) or redis.call("pttl", KEYS[1])
		' 2 "$NAME" "rlock_ends:{$NAME}")
	echo $((left_ms > 0 ? at_us + left_ms * 1000 : 0))
}

# look_until_gone LIMIT_MS: sets SEEN_US, when one was inside for the last time.
look_until_gone() {
	SEEN_US=$(overlap -G "$LEDGER" "$1") || {
		violated 'inside long behind the end'
		return 1
	}
}

# was_gone_by END_US [LATE_US]: the last one was gone by then, or so much later on a busy machine. How much was left counts.
was_gone_by() {
	took $((($1 - SEEN_US) / 1000))
	((SEEN_US < $1 + ${2:-0})) || late_since "$SINCE_US" "inside $(((SEEN_US - $1) / 1000)) ms behind the end"
}

# A machine that does not wake a process in time, for so long, keeps rlock from running as well.
STALL_MS=40

# For setup_file and teardown_file.
start_metronome() {
	"$TOP/tests/bin/metronome" 5 "$STALL_MS" >"$BATS_FILE_TMPDIR/stalls" 3>&- &
	export METRONOME=$!
}

stop_metronome() {
	kill "$METRONOME"
}

# runs_smoothly_since US: as far as the metronome has found, where there is one.
runs_smoothly_since() {
	[ -z "${METRONOME-}" ] || awk -v since="$1" '$1 > since { stalls++ } END { exit (stalls > 0) }' "$BATS_FILE_TMPDIR/stalls"
}

# unless_stalled US VERB TEXT: violated or broke; where the machine stood still meanwhile, a line for readers of the log.
unless_stalled() {
	if runs_smoothly_since "$1"; then
		"${@:2}"
	else
		echo "# the machine stood still meanwhile: $3 ($WHERE)" >&3
	fi
}

# late_since US TEXT
late_since() {
	unless_stalled "$1" violated "$2"
}

# ---- witnesses ----

# start_contender CONTENDER KIND LEDGER STAY [OPTION...]: an rlock in the background that wants the cell's lock for an `overlap`
# with the options STAY; its messages are in the file "stderr-CONTENDER". Sets PID. With "until" for STAY, and whatever
# comes after it, it stays until `finish_contender CONTENDER`.
start_contender() {
	local stay=${4/#until/-u $CELL/leave-$1}
	# shellcheck disable=SC2086
	in_background sh -c 'exec "$@" 2>"$0"' "$CELL/stderr-$1" \
		"${CLOCK[@]}" rlock "$(verb_of "$2")" "${@:5}" "$NAME" -- overlap "$3" "$(mode_of "$2")" $stay
}

# start_holder_family CONTENDER KIND LEDGER [OPTION...]: start_contender, with a family that is hard to stop, see `overlap -C`. Returns when all are inside.
# Sets HOLDER.
start_holder_family() {
	start_contender "$1" "$2" "$3" 'until -C' "${@:4}"
	HOLDER=$PID
	wait_until 30 all_inside "$3" "$FAMILY_SIZE"
}

# Its command ends.
finish_contender() {
	: >"$CELL/leave-$1"
}

# inside LEDGER: prints the pids of the processes that went in.
inside() {
	sed -nE 's/^[0-9]+ (enter|child) [a-z]+ ([0-9]+)$/\2/p' "$1" 2>/dev/null
}

# all_inside LEDGER COUNT: COUNT processes in all have gone in.
all_inside() {
	[ "$(inside "$1" | wc -l)" = "$2" ]
}

# entered COUNT [LEDGER]: COUNT commands have gone in.
entered() {
	[ "$(times enter "${2:-$LEDGER}" | wc -l)" = "$1" ]
}

# times EVENT [LEDGER]: prints when the event happened, a line each.
times() {
	sed -n "s/ $1 .*//p" "${2:-$LEDGER}" 2>/dev/null
}

# is_well LEDGER: a process is inside, and the lock is held.
is_well() {
	! overlap -g "$1" 0 >/dev/null && is_held "$NAME"
}

# is_excluded KIND: a client that a hold of this kind excludes does not get the lock.
is_excluded() {
	local status=0
	rlock "$(verb_of "$(excluded_kind "$1")")" -n "$NAME" -- true || status=$?
	[ "$status" = 75 ]
}

# all_commands_run: every process that went in is running.
all_commands_run() {
	local pid
	for pid in $(inside "$LEDGER"); do
		is_running "$pid" || return
	done
}

# must_keep_lock KIND MIN_MS MAX_MS: a fault was injected. After a random time between these two the lock is held, and its command runs.
must_keep_lock() {
	injected 1
	repeated 1
	draw "$2" "$3"
	let_pass_ms "$DRAWN"
	must 'the lock was not kept' is_excluded "$1"
	must 'the command did not go on' all_commands_run
}

# waiting [NAME]: prints how many wait for the lock, the cell's by default.
waiting() {
	echo $(($(redis zcard "rlock_queue:{${1:-$NAME}}") + $(redis llen "redisson_lock_queue:{${1:-$NAME}}")))
}

# listen COUNT [NAME]: at least COUNT wait for it.
listen() {
	(($(waiting "${2:-$NAME}") >= $1))
}

# said_by CONTENDER: prints its messages as one line.
said_by() {
	paste -s -d ';' "$CELL/stderr-$1" 2>/dev/null
}

# must_end STATUSES PID CONTENDER: the process must end with one of these statuses.
must_end() {
	local status=0
	wait_until 30 is_gone "$2" || {
		violated "$3 does not end"
		return 0
	}
	wait "$2" 2>/dev/null || status=$?
	[[ " $1 " = *" $status "* ]] || violated "$3 ended with $status, not $1: $(said_by "$3")"
}

# must_say CONTENDER [PATTERN]: the contender must have printed one line that matches; without PATTERN, nothing.
must_say() {
	if [ $# = 1 ]; then
		[ ! -s "stderr-$1" ]
	else
		has_line_count "stderr-$1" 1 && grep -qE "^rlock: .*$2" "stderr-$1"
	fi || violated "$1 said: $(said_by "$1")"
}

# call COMMAND [ARG...]: sets STATUS; the lines that it said are in SAID. What it has to do by itself takes OWN_MS. One that hangs is killed.
call() {
	local start=${EPOCHREALTIME/./} ms
	STATUS=0
	timeout --foreground -s KILL 30 "$@" 2>stderr 3>&- || STATUS=$?
	ms=$(((${EPOCHREALTIME/./} - start) / 1000 - ${OWN_MS:-0}))
	took $((ms > 0 ? ms : 0))
	((ms <= ${CALL_LIMIT_MS:-8000})) || violated "$* took $ms ms"
	mapfile -t SAID <stderr
}

# must_tell GOOD SAYS [BAD]: STATUS is one of GOOD, and a line like SAYS was said, or nothing when that is empty; or it is one of BAD, and one
# line was said, which is like the variable SAYS, if set. To IS_DEAF nothing can be said.
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

# calls STATUSES COMMAND [ARG...]: it ends with one of these. One that fails says why.
calls() {
	call "${@:2}"
	must_tell 0 '' "$1"
	[[ " $1 " = *" $STATUS "* ]] || violated "${*:2} ended with $STATUS, not $1"
}
