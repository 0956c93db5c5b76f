#!/usr/bin/env bats
# Every process of a lock gets every signal, at any moment of a lease, with the server well, gone, and back
# again: the outcome is the one that stands in kill_matrix. And never is another command inside as long as one
# of COMMAND's processes is, but where rlock and its renewer are both killed, or both stopped.
#
# This file has the cells, and how often each is tried. What happens in one is in killing.bash, and what the words of the
# table mean in kill_outcomes.bash.

# What is set here is for these two as well.
# shellcheck disable=SC2034

load chaos
load ../lib/proxying
load killing
load kill_outcomes

setup_file() {
	start_server
	start_metronome
}

teardown_file() {
	stop_metronome
	stop_server
}

WIDTH=8
TRIES=8
COLUMNS_OF_TABLE=(up gone back late)
# Nothing passes in either direction, or no request does.
OUTAGES=('cut' 'blackhole on' 'blackhole on up')
WITH_SEM=("${KINDS[@]}" sem)

# ---- the table ----

# rows_of TARGET...: their rows.
rows_of() {
	local IFS='|'
	grep -E "^($*) " "$BATS_TEST_DIRNAME/kill_matrix"
}

# matrix COUNT KIND TARGET...: so many cells of these targets' rows; of fewer than there are, some of all sorts.
matrix() {
	local count=$1 kind=$2
	mapfile -t ROWS < <(rows_of "${@:3}")
	in_cells "$(scaled "$count")" "$WIDTH" cell "$kind"
}

# cell NUMBER KIND|any: numbers go through the cells by a stride that has no factor in common with 4 columns and
# 31 or 12 rows.
cell() {
	local cells=$((4 * ${#ROWS[@]})) index kind=$2 words begun_us
	index=$((($1 - 1) * 37 % cells))
	[ "$kind" != any ] || kind=${WITH_SEM[(index + index / 4 + ($1 - 1) / cells) % 5]}
	read -ra words <<<"${ROWS[index / 4]}"
	TARGET=${words[0]} SIGNAL=${words[1]} OUTCOME=${words[2 + index % 4]}
	SERVER=${COLUMNS_OF_TABLE[index % 4]}
	KIND=$kind
	OUTAGE=${OUTAGES[(index + index / 4 + ($1 - 1) / cells + ${#kind}) % 3]}
	begun_us=$(now_us)
	for ((index = 0; index < TRIES; index++)); do
		try_cell && return
		start_anew
	done
	# On a machine that is busy all the time nothing can be put to the test.
	! runs_smoothly_since "$begun_us" || {
		echo "never came about in $TRIES tries: $WHAT"
		return 1
	}
	echo "$WHAT" >>"$BATS_FILE_TMPDIR/never"
}

# Fails, and puts nothing on record, when the machine was too busy.
try_cell() {
	local try scenario=$RECORD RECORD=$CELL/record start_us
	start_us=$(now_us)
	SEED=$SRANDOM RANDOM=$SEED
	# All permits of a semaphore, one or several: no other command is inside.
	PERMITS=$((1 + RANDOM % 3)) OF_SEM=()
	[ "$KIND" != sem ] || OF_SEM=(--permits "$PERMITS" --take "$PERMITS")
	WHAT="$TARGET $SIGNAL, server $SERVER by $OUTAGE, $KIND, seed $SEED"
	try=$BASHPID.$SEED
	NAME=$NAME.$try. LEDGER=$CELL/ledger.$try SAID=$CELL/said
	# Never a signal to the process that was meant the time before.
	unset -v RLOCK RENEWER COMMAND GRANDCHILD CALLER LONE_RENEWER HIT
	CHILDREN=()
	start_proxy && "hold_for_$(holder)" || return
	contend
	let_pass_ms $((RANDOM % (LEASE_MS / 3)))
	# A pause, or an outage, that was longer than ordered is another fault.
	inflict || return
	repeated
	"outcome_$OUTCOME"
	finish
	if grep -qE '^(violation|broken) ' "$RECORD" && ! runs_smoothly_since "$start_us"; then
		grep -E '^(violation|broken) ' "$RECORD" >>"$BATS_FILE_TMPDIR/excused"
		return 1
	fi
	cat "$RECORD" >>"$scenario"
}

holder() {
	case $TARGET in
	lone | caller) echo caller ;;
	*) echo command ;;
	esac
}

start_anew() {
	echo "$WHAT" >>"$BATS_FILE_TMPDIR/again"
	end_cell
	# The proxy's sockets, and let-go; not what the cell says itself.
	find "$CELL" -mindepth 1 ! -name cell-said -delete
}

# ---- the scenarios ----

# end_matrix [FILE]: the margins go to that file.
end_matrix() {
	[ $# = 0 ] || sed -n 's/^margin //p' "$RECORD" >>"$1"
	local again=0 excused=0
	if [ -e "$BATS_FILE_TMPDIR/again" ]; then
		again=$(wc -l <"$BATS_FILE_TMPDIR/again")
		rm "$BATS_FILE_TMPDIR/again"
	fi
	if [ -e "$BATS_FILE_TMPDIR/excused" ]; then
		excused=$(wc -l <"$BATS_FILE_TMPDIR/excused")
		show_excused
	fi
	if [ -e "$BATS_FILE_TMPDIR/never" ]; then
		sed 's/^/# the machine was too busy for: /' "$BATS_FILE_TMPDIR/never" >&3
		rm "$BATS_FILE_TMPDIR/never"
	fi
	end_scenario "from the fault to the next holder; $again cells done again, for $excused things that went wrong"
}

@test "killed and stopped" {
	local kind
	for kind in "${WITH_SEM[@]}"; do
		begin_scenario "killed and stopped, $kind"
		matrix 124 "$kind" rlock renewer both all command grandchild
		end_matrix "$BATS_FILE_TMPDIR/margins"
	done
}

@test "killed and stopped, without a command" {
	begin_scenario 'killed and stopped, without a command'
	matrix 48 any lone caller
	end_matrix
}

# What the scenarios above have found.
@test "killed and stopped, margin" {
	local margin
	begin_scenario 'killed and stopped, margin'
	while read -r margin; do
		repeated
		injected
		took "$margin"
		((margin >= 0)) || violated "$margin ms"
	done <"$BATS_FILE_TMPDIR/margins"
	end_scenario 'from the last process to the end of the lease' least
}
