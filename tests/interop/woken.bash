# How soon a waiter gets in when the other side releases. Sourced after interop.bash and turns.bash.

ROUNDS=7
# A message takes milliseconds; the next look without one comes after 5 s at the earliest. That a busy machine takes longer
# for most rounds is no matter, but it does not for all of them.
PROMPT_MS=100
LEAST_PROMPT=2
LATE_MS=3000

# both_are_woken HELD WANTED NAME: in both directions.
both_are_woken() {
	local round
	: >rlock-took
	: >java-took
	for ((round = 1; round <= ROUNDS; round++)); do
		time_of_rlock "r$round" "$1" "$2" "$3" >>rlock-took
		time_of_java "j$round" "$1" "$2" "$3" >>java-took
	done
	were_prompt rlock "$1 $2"
	were_prompt java "$1 $2"
	nothing_is_left
}

# is_ready KIND NAME: a waiter is in the queue, or listens.
is_ready() {
	wait_until 5 has_waiter "$1" "$2"
}

# time_of_rlock PARTY HELD WANTED NAME: prints the milliseconds from Java's release until the command of rlock began.
time_of_rlock() {
	local start
	java_locks T1 "$2" "$4"
	rlock_begins "$1" "$3" "$4"
	is_ready "$3" "$4"
	start=$(now_ms)
	java_unlocks T1 "$2" "$4"
	rlock_enters "$1"
	echo $(($(stat -c %.3Y "$BATS_TEST_TMPDIR/$1.in" | tr -d .) - start))
	rlock_leaves "$1"
}

# time_of_java PARTY HELD WANTED NAME: from when the command of rlock may end until Java's thread has the lock.
time_of_java() {
	local start
	rlock_locks "$1" "$2" "$4"
	java_begins T1 lock "$3" "$4"
	is_ready "$3" "$4"
	java_waits T1 50
	start=$(now_ms)
	touch "$BATS_TEST_TMPDIR/$1.out"
	java_enters T1
	echo $(($(now_ms) - start))
	ended_with 0 "${PIDS[$1]}"
	java_unlocks T1 "$3" "$4"
}

# were_prompt SIDE KINDS: some rounds were, and none was late. The numbers are for readers of the log.
were_prompt() {
	local -a took
	mapfile -t took < <(sort -n "$1-took")
	echo "# $1 woken, $2: median ${took[ROUNDS / 2]} ms, longest ${took[-1]} ms" >&3
	((${#took[@]} == ROUNDS && took[LEAST_PROMPT - 1] <= PROMPT_MS && took[-1] <= LATE_MS)) || {
		echo "$1 took ${took[*]} ms" >&2
		return 1
	}
}
