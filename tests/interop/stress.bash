# Java threads and shells that take turns with a lock. Files outside the server show whether two were inside at the same time: an
# exclusive holder creates "writer", a shared one "reader.CONTENDER", and the holder of one of three permits one of "slot.1" to
# "slot.3". Each holder first creates its file, and then checks for files of others. So if two holders are inside at the same
# time, at least one of them sees the other. See commands/turn and Stress.java. Sourced after interop.bash. TURNS: how many turns
# all of them take together.

teardown() {
	touch stop
	interop_teardown
}

# play KIND NAMES PAUSE_MS SHARE [MOST_MS]: runs until TURNS turns are done. Each contender pauses for up to PAUSE_MS between two
# turns. Then checks: no two holders that exclude each other met; each side had at least one in SHARE turns; each contender had a
# turn, and waited for MOST_MS (20 s) at most for each.
play() {
	local contender side all
	local -a names loops=() contenders=(1 2 3 4)
	IFS=, read -ra names <<<"$2"
	rm -f stop
	: >log
	[ "$1" != sem ] || contenders+=(5 6 7 8)
	java_begins T stress "$1" "$2" "$PWD" "$3" ${#contenders[@]}
	for contender in "${contenders[@]}"; do
		in_background turns "rlock$contender" "$3" "$1" "${names[@]}"
		loops+=("$PID")
	done
	wait_until 240 enough_turns
	touch stop
	# Wait for longer than the lease of 30 s: a contender that is waiting and is not woken acquires the lock only when that
	# lease ends.
	java_does 'done' await T 45000
	for PID in "${loops[@]}"; do
		wait_until 45 is_gone "$PID"
	done
	# Print the number of turns and the longest wait of each side to the log of the tests.
	awk -v name="$*" '
		{ side = substr($1, 1, 4) == "java" ? "Java" : "rlock"; n[side]++; if ($2 > most[side]) most[side] = $2 }
		END { for (side in n) printf "# %s: %s %d turns, longest wait %d ms\n", name, side, n[side], most[side] }
	' log >&3
	[ ! -e wrong ] || {
		head -n 20 wrong >&2
		return 1
	}
	all=$(wc -l <log)
	for side in java rlock; do
		(($(grep -c "^$side" log) * $4 >= all))
	done
	assert_equal "$(cut -d ' ' -f 1 log | sort -u | wc -l)" $((2 * ${#contenders[@]}))
	run -0 awk -v most="${5:-20000}" '$2 > most { print }' log
	assert_output ''
	assert_equal "$(find . -name writer -o -name 'reader.*' -o -name 'slot.*')" ''
	[ "$1" = sem ] || nothing_is_left
}

enough_turns() {
	[ -e wrong ] || [ "$(wc -l <log)" -ge "${TURNS:-2000}" ]
}

# all_are_woken: for pairs of kinds that exclude each other, a release by each side must wake a waiter of the other side.
all_are_woken() {
	local kinds held wanted
	for kinds in 'plain plain' 'fair fair' 'write read' 'read write'; do
		read -r held wanted <<<"$kinds"
		rlock_is_woken "$held" "$wanted" a
		java_is_woken "$held" "$wanted" a
	done
}

# all_play_well: plays with plain, fair and read/write locks. Allow a wait of 45 s: a Java thread that has missed a message (see
# none_listens) sleeps until the lease of 30 s ends.
all_play_well() {
	TURNS=200
	play plain a 100 16 45000
	play fair a 10 16 45000
	play readwrite a 50 16 45000
}
