# What the scenarios share: cells (one repetition of a fault each) that run side by side, what they found
# put on record, and a row of the table for all of them. Sourced by every tests/chaos/*.bats.
#
#   SCALE         how many repetitions, as a multiple of what CI does (1); 0.1 for a quick look
#   CHAOS_TABLE   the rows of the table are appended to this file

# KINDS and what in_cell sets are for the scenarios.
# shellcheck disable=SC2034

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
	if [ "$1" = read ]; then
		echo shared
	else
		echo exclusive
	fi
}

# rival_kind KIND: the kind that this one keeps out.
rival_kind() {
	if [ "$1" = read ]; then
		echo write
	else
		echo "$1"
	fi
}

# scaled COUNT: so many at the scale that is asked for, one at least.
scaled() {
	awk -v count="$1" -v scale="${SCALE:-1}" 'BEGIN {
		count = int(count * scale + 0.5)
		print count < 1 ? 1 : count
	}'
}

# ---- what a scenario finds ----

# begin_scenario NAME: as it is called in the table and in the manual.
begin_scenario() {
	SCENARIO=$1
	RECORD=$BATS_TEST_TMPDIR/record
	: >"$RECORD"
}

# Each of these is one line, written at once: cells run side by side.

# repeated [COUNT]: the guarantee was put to the test so often.
repeated() {
	echo "repetition ${1:-1}" >>"$RECORD"
}

# injected [COUNT]: so many faults happened. To be called when they did, not when they were ordered.
injected() {
	echo "fault ${1:-1}" >>"$RECORD"
}

# violated TEXT: the guarantee did not hold.
violated() {
	echo "violation $1" >>"$RECORD"
}

# must TEXT COMMAND [ARG...]: else the guarantee was violated, with that text. Always succeeds.
must() {
	local text=$1 heard
	shift
	heard=$("$@" 2>&1) || violated "$text${heard:+ ($heard)}"
}

# took MS: one time that the scenario is about; end_scenario takes the worst.
took() {
	echo "time $1" >>"$RECORD"
}

# broke TEXT: the scenario itself did not work, and says nothing about the guarantee.
broke() {
	echo "broken $1" >>"$RECORD"
}

# end_scenario WHAT [least]: makes a row of what is on record. WHAT says what the times are; the worst is the
# greatest, or with "least" the smallest.
end_scenario() {
	local row repetitions
	row=$(awk -v name="$SCENARIO" -v what="$1" -v least="${2:-}" '
		$1 == "repetition" { repetitions += $2 }
		$1 == "fault" { faults += $2 }
		$1 == "violation" { violations++ }
		$1 == "time" {
			if (!times++ || (least != "" ? $2 < worst : $2 > worst)) worst = $2
		}
		END {
			printf "%s|%d|%d|%d|", name, repetitions, faults, violations
			if (times) printf "%s ms %s", worst, what
			print ""
		}' "$RECORD")
	echo "$row" >>"${CHAOS_TABLE:-/dev/null}"
	echo "# $row" >&3
	grep -E '^(violation|broken) ' "$RECORD" | sort | uniq -c | sort -rn | head -n 40 || :
	repetitions=$(cut -d '|' -f 2 <<<"$row")
	((repetitions > 0)) || fail 'nothing was put to the test'
	! grep -qE '^(violation|broken) ' "$RECORD"
}

# ---- cells ----

# in_cells COUNT WIDTH FUNCTION [ARG...]: FUNCTION NUMBER ARG... so often, so many at a time, each in a
# directory and with a runtime directory of its own. What it leaves running is ended.
in_cells() {
	local count=$1 width=$2 number running=0
	shift 2
	for ((number = 1; number <= count; number++)); do
		if ((running == width)); then
			wait -n || :
			running=$((running - 1))
		fi
		in_cell "$number" "$@" &
		running=$((running + 1))
	done
	wait
}

# in_cell NUMBER FUNCTION [ARG...]
in_cell() {
	local number=$1
	shift
	# What bats does before each command, to show the one that failed, costs as much as all the rest of a cell.
	trap - DEBUG
	CELL=$BATS_TEST_TMPDIR/$1.${*:2}.$number
	CELL=${CELL// /.}
	mkdir -p "$CELL"
	# The helpers of all tests put their files there, and `ours` knows the cell's processes by it.
	export BATS_TEST_TMPDIR=$CELL RLOCK_RUNTIME_DIR=$CELL/run
	BACKGROUND=()
	cd "$CELL" || return
	LEDGER=$CELL/ledger
	# With a dot behind it no name is the beginning of another one.
	NAME=lock.$1.${*:2}.$number.
	NAME=${NAME// /.}
	if ! "$1" "$number" "${@:2}" >cell-said 2>&1; then
		broke "cell $* number $number: $(tail -n 3 cell-said | tr '\n' ';')"
	fi
	end_cell
	rm -rf "$CELL"
}

# Whatever a cell has started carries its directory in its environment.
end_cell() {
	local environment pid
	let_go
	while IFS= read -r environment; do
		pid=${environment#/proc/}
		pid=${pid%%/*}
		[ "$pid" = "$BASHPID" ] || kill -KILL "$pid" 2>/dev/null || :
	done < <(grep -lzsxF "RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR" /proc/[0-9]*/environ)
	wait
}

# ---- chance ----

# begin_chance: for the first line of a cell. RANDOM follows a number from here on; it stands in CHANCE, which
# is to be told with a violation.
begin_chance() {
	CHANCE=$RANDOM
	RANDOM=$CHANCE
}

# draw LEAST MOST: sets DRAWN. (What a subshell draws follows no number.)
draw() {
	DRAWN=$(($1 + RANDOM * ($2 - $1 + 1) / 32768))
}

# shuffle ARG...: sets the array SHUFFLED.
shuffle() {
	local i
	SHUFFLED=()
	while (($#)); do
		draw 1 $#
		SHUFFLED+=("${!DRAWN}")
		i=$DRAWN
		set -- "${@:1:i-1}" "${@:i+1}"
	done
}

# ---- waiting without a process for each look ----

# pause SECONDS
pause() {
	local fifo=$BATS_FILE_TMPDIR/pause
	[ -p "$fifo" ] || mkfifo "$fifo" 2>/dev/null || :
	read -r -t "$1" <>"$fifo" || :
}

# let_pass_ms MS
let_pass_ms() {
	local ms
	printf -v ms '%04d' "$1"
	pause "${ms::-3}.${ms: -3}"
}

# soon SECONDS COMMAND [ARG...]: as wait_until, for commands of the shell's own.
soon() {
	local end_us=$((${EPOCHREALTIME/./} + $1 * 1000000))
	shift
	until "$@"; do
		((${EPOCHREALTIME/./} < end_us)) || return
		pause 0.01
	done
}

# spin US: no process can sleep as sharply.
spin() {
	local end=$((${EPOCHREALTIME/./} + $1))
	while ((${EPOCHREALTIME/./} < end)); do :; done
}

# has_events COUNT: so many lines are in the cell's ledger, at least.
has_events() {
	local lines
	[ -e "$LEDGER" ] && mapfile -t lines <"$LEDGER" && ((${#lines[@]} >= $1))
}

# runs PID
runs() {
	local stat
	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return
	[[ ${stat##*) } != [ZX]* ]]
}

# ---- a machine that stands still ----

# A machine that does not wake a process in time, for so long, keeps rlock from running as well.
STALL_MS=40

# For setup_file and teardown_file.
start_metronome() {
	metronome 5 "$STALL_MS" >"$BATS_FILE_TMPDIR/stalls" 3>&- &
	export METRONOME=$!
}

stop_metronome() {
	kill "$METRONOME"
}

# runs_smoothly_since US: as far as the metronome has found.
runs_smoothly_since() {
	awk -v since="$1" '$1 > since { stalls++ } END { exit (stalls > 0) }' "$BATS_FILE_TMPDIR/stalls"
}

# late_since US TEXT: a violation, unless the machine stood still meanwhile.
late_since() {
	if runs_smoothly_since "$1"; then
		violated "$2"
	else
		echo "$2" >>"$BATS_FILE_TMPDIR/excused"
	fi
}

# For readers of the log: what was no violation for that reason.
show_excused() {
	[ -e "$BATS_FILE_TMPDIR/excused" ] || return 0
	sed 's/^/# the machine stood still meanwhile: /' "$BATS_FILE_TMPDIR/excused" >&3
	rm "$BATS_FILE_TMPDIR/excused"
}

# ---- witnesses ----

# Milliseconds on the clock that `overlap` writes.
boottime_ms() {
	local uptime rest
	read -r uptime rest </proc/uptime
	echo $((${uptime/./} * 10))
}

# entered COUNT: so many went inside, by the cell's ledger.
entered() {
	[ "$(grep -c ' enter ' "$LEDGER" 2>/dev/null)" = "$1" ]
}

# count_overlaps LEDGER: each is a violation.
count_overlaps() {
	local line
	while IFS= read -r line; do
		violated "two inside: $line${WHERE:+ ($WHERE)}"
	done < <(grep ' overlap ' "$1")
}

# visits VISITOR KIND LEDGER STAY [OPTION...]: an rlock in the background that wants the cell's lock for an `overlap`
# with the options STAY; its messages are in the file "said-VISITOR". Sets PID. With "until" for STAY, and whatever
# comes after it, it stays until `leaves VISITOR`.
visits() {
	local stay=${4/#until/-u $CELL/leave-$1}
	# shellcheck disable=SC2086
	in_background sh -c 'exec "$@" 2>"$0"' "$CELL/said-$1" \
		"${CLOCK[@]}" rlock "$(verb_of "$2")" "${@:5}" "$NAME" -- overlap "$3" "$(mode_of "$2")" $stay
}

# The command with its three children: see `overlap -C`.
FAMILY_SIZE=4

# holds VISITOR KIND LEDGER [OPTION...]: visits, with a family that is hard to stop. Returns when all are inside.
holds() {
	visits "$1" "$2" "$3" 'until -C' "${@:4}"
	wait_until 10 all_inside "$3" $FAMILY_SIZE
}

# Its command ends.
leaves() {
	touch "$CELL/leave-$1"
}

# has_one_inside LEDGER
has_one_inside() {
	! overlap -g "$1" 0 >/dev/null
}

# all_is_well_with LEDGER KIND
all_is_well_with() {
	has_one_inside "$1" && is_held "$NAME"
}

# all_inside LEDGER COUNT: so many processes in all have gone in.
all_inside() {
	[ "$(grep -cE ' (enter|child) ' "$1" 2>/dev/null)" = "$2" ]
}

# Microseconds on the clock of the ledgers.
now_us() {
	overlap -g "$CELL/nobody" 0
}

# gone_us LEDGER LIMIT_MS: sets GONE_US, when nothing was inside any more.
gone_us() {
	GONE_US=$(overlap -g "$1" "$2")
}

# said_by VISITOR: as one line.
said_by() {
	paste -s -d ' ' "$CELL/said-$1"
}

# must_end STATUS VISITOR PID WHERE: the visit comes to an end, and with that status. WHERE is told else.
must_end() {
	local status=0
	wait_until 30 is_gone "$3" 2>/dev/null || {
		violated "$2 does not end, $4"
		return 0
	}
	wait "$3" || status=$?
	[ "$status" = "$1" ] || violated "$2 ended with $status, not $1, $4: $(said_by "$2")"
}

# ---- what is on the server ----

# cell_has_no_keys: of none of its locks there is one.
cell_has_no_keys() {
	[ -z "$(redis keys "*$NAME*")" ]
}

# beside_lock: the keys of the cell's lock other than itself.
beside_lock() {
	redis --raw keys "*{$NAME}*"
}

# Sets OFF_US, by how much the wall clock is before that of the ledgers; by the quickest of some looks.
compare_clocks() {
	local begun_us at_us took_us least_us=1000000000
	for _ in {1..20}; do
		begun_us=${EPOCHREALTIME/./}
		at_us=$(overlap -g nobody 0)
		took_us=$((${EPOCHREALTIME/./} - begun_us))
		if ((took_us < least_us)); then
			least_us=$took_us
			OFF_US=$((begun_us + took_us / 2 - at_us))
		fi
	done
}

# When the lease ends by what the server knows now, on the clock of the ledgers; 0: there is none.
lease_end_us() {
	local end_us
	end_us=$(redis eval 'local ttl_ms, now = redis.call("pttl", KEYS[1]), redis.call("time")
		return ttl_ms > 0 and now[1] * 1000000 + now[2] + ttl_ms * 1000 or 0' 1 "$NAME")
	((end_us == 0)) || end_us=$((end_us - OFF_US))
	echo "$end_us"
}

# listeners [NAME]: how many wait for that lock, the cell's if none is given: those with a channel of their own, and those
# that listen to the channel of the lock alone. Of the former the first one listens to that, too. Each that listens to that
# listens to "...:rlock" as well.
listeners() {
	redis eval 'local own, lock = 0, 0
		for _, channel in ipairs(redis.call("pubsub", "channels", ARGV[1])) do
			local count = redis.call("pubsub", "numsub", channel)[2]
			if string.sub(channel, -6) == ":rlock" then
				count = 0
			end
			if string.find(channel, "}:", 1, true) then
				own = own + count
			else
				lock = lock + count
			end
		end
		return own + math.max(0, lock - math.min(own, 1))' 0 "*{${1:-$NAME}}*"
}

# listen COUNT [NAME]: at least so many do; 0: none does.
listen() {
	local count
	count=$(listeners "${2:-$NAME}")
	(($1 == 0 ? count == 0 : count >= $1))
}

# Of the cell's lock nothing is left on the server, and nothing listens for it.
is_forgotten() {
	is_free "$NAME" && [ -z "$(beside_lock)" ] && listen 0
}

# must_leave_nothing SECONDS: behind all that was said and done.
must_leave_nothing() {
	wait_until "$1" is_forgotten >/dev/null 2>&1 ||
		violated "left on the server: $(is_free "$NAME" || echo "the lock") $(beside_lock | paste -s -d ' ') $(listeners) listeners"
	wait_until 10 nothing_runs >/dev/null 2>&1 || violated "of rlock runs: $(processes_of_test | paste -s -d ' ')"
}
