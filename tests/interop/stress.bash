# Java threads and shells that take turns with a lock, and what was seen of them outside the server, by files: see
# commands/turn and Stress.java. Sourced after interop.bash; TURNS is how many turns they take.

PARTIES=4

teardown() {
	touch stop
	interop_teardown
}

# ---- playing ----

# play KIND NAMES PAUSE_MS: until there were TURNS turns. Each waits for up to so long between two turns.
play() {
	local names number loop
	local -a loops=()
	IFS=, read -ra names <<<"$2"
	rm -f stop
	echo 0 >count
	: >log
	java_begins T stress "$1" "$2" "$PWD" "$3" $PARTIES
	for ((number = 1; number <= PARTIES; number++)); do
		in_background turns "$PWD" "rlock$number" "$3" "$1" "${names[@]}"
		loops+=("$PID")
	done
	wait_until 240 enough_turns
	touch stop
	# All get in, if not sooner when the lease of one that was not woken would be over: how long each waited is on record.
	java_does 'done' await T 45000
	for loop in "${loops[@]}"; do
		wait_until 45 is_gone "$loop"
	done
	report
}

enough_turns() {
	[ -e wrong ] || [ "$(grep -c '^enter' log)" -ge "$TURNS" ]
}

# For readers of the log of the tests.
report() {
	awk -v name="$BATS_TEST_DESCRIPTION" '
		/^enter/ { side = substr($2, 1, 4) == "java" ? "Java" : "rlock"; n[side]++; if ($3 > most[side]) most[side] = $3 }
		END { for (side in n) printf "# %s: %s %d turns, longest wait %d ms\n", name, side, n[side], most[side] }
	' log >&3
}

# ---- what was seen ----

nothing_was_wrong() {
	[ ! -e wrong ] || {
		head -n 20 wrong >&2
		return 1
	}
}

# Each that came left before the next one came, and each was counted.
one_at_a_time() {
	assert_equal "$(cat count)" "$(grep -c '^enter' log)"
	run -0 awk '
		/^enter/ && inside { print "line " NR ": " $2 " came, and " inside " was inside" }
		/^enter/ { inside = $2 }
		/^leave/ && inside != $2 { print "line " NR ": " $2 " left, and " inside " was inside" }
		/^leave/ { inside = "" }' log
	assert_output ''
}

# each_side_had SHARE: at least one in so many turns, and each party had some.
each_side_had() {
	local all side
	all=$(grep -c '^enter' log)
	for side in java rlock; do
		(($(grep -c "^enter $side" log) * $1 >= all))
	done
	assert_equal "$(sed -n 's/^enter \([^ ]*\).*/\1/p' log | sort -u | wc -l)" $((2 * PARTIES))
}

# What was in the queue when another one entered is next, in that order.
in_the_order_of_the_queue() {
	run -0 awk '
		/^enter/ { owner[++n] = $4; for (i = 5; i <= NF; i++) queue[n, i - 4] = $i; behind[n] = NF - 4 }
		END {
			for (i = 1; i <= n; i++) {
				compared += behind[i]
				for (j = 1; j <= behind[i] && i + j <= n; j++)
					if (owner[i + j] != queue[i, j])
						print "turn " i + j " was not for " queue[i, j]
			}
			if (compared < n)
				print "hardly any waiter was in the queue"
		}' log
	assert_output ''
}

none_waited_longer_than() {
	run -0 awk -v limit="$1" '/^enter/ && $3 > limit { print }' log
	assert_output ''
}

# ---- all of it ----

# plays_well PLAIN_MS FAIR_MS READWRITE_MS: with each kind, with such pauses.
plays_well() {
	play plain a "$1"
	nothing_was_wrong
	one_at_a_time
	nothing_is_left
	play fair a "$2"
	nothing_was_wrong
	one_at_a_time
	in_the_order_of_the_queue
	nothing_is_left
	play readwrite a "$3"
	nothing_was_wrong
	assert_equal "$(ls -d writer reader.* 2>/dev/null)" ''
	nothing_is_left
}
