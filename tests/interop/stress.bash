# Java threads and shells that take turns with a lock, and whether one was inside beside another, seen outside the server by
# files: an exclusive one makes "writer", a shared one "reader.CONTENDER", and each looks for the other only after that, so that of
# two that meet one at least sees the other; one with a permit of three makes one of "slot.1" to "slot.3". See commands/turn and
# Stress.java. Sourced after interop.bash; TURNS is how many turns they take.

teardown() {
	touch stop
	interop_teardown
}

# play KIND NAMES PAUSE_MS SHARE [MOST_MS]: until there were TURNS turns. Each pauses for up to so long between two turns. None meets
# another one, each side has at least one in SHARE turns, each contender some, and none waits for longer than MOST_MS.
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
	# All get in, if not sooner when the lease of one that was not woken would be over.
	java_does 'done' await T 45000
	for PID in "${loops[@]}"; do
		wait_until 45 is_gone "$PID"
	done
	# For readers of the log of the tests.
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

# With each kind, and by either side.
all_are_woken() {
	local kinds held wanted
	for kinds in 'plain plain' 'fair fair' 'write read' 'read write'; do
		read -r held wanted <<<"$kinds"
		rlock_is_woken "$held" "$wanted" a
		java_is_woken "$held" "$wanted" a
	done
}

# A Java thread that is not heard, see none_listens, sleeps out a lease of 30 s.
all_play_well() {
	TURNS=200
	play plain a 100 16 45000
	play fair a 10 16 45000
	play readwrite a 50 16 45000
}
