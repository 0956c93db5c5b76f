# What has to be true of each kind of lock, for the kinds HELD and WANTED that exclude each other: T1 is a
# thread of a Java service, r an rlock. NAMES has commas between names. Sourced after interop.bash.

# first NAMES: the one that waiters of several meet first.
first() {
	echo "${1%%,*}"
}

# Each of these may be called several times in a test.

# rlock_is_woken HELD WANTED NAMES: by Java's release, and does not sleep out the lease of 30 s.
rlock_is_woken() {
	java_locks T1 "$1" "$3"
	rlock_begins r "$2" "$3"
	wait_until 20 has_waiter "$2" "$(first "$3")"
	rlock_waits r
	java_unlocks T1 "$1" "$3"
	took_less 4 rlock_enters r
	rlock_leaves r
	nothing_is_left
}

java_is_woken() {
	rlock_locks r "$1" "$3"
	java_begins T1 lock "$2" "$3"
	wait_until 20 has_waiter "$2" "$(first "$3")"
	java_waits T1 100
	rlock_leaves r
	took_less 4 java_enters T1
	java_unlocks T1 "$2" "$3"
	nothing_is_left
}

# With each kind, and by either side.
all_are_woken() {
	local kinds
	for kinds in 'plain plain' 'fair fair' 'write read' 'read write'; do
		# shellcheck disable=SC2086
		rlock_is_woken $kinds a
		# shellcheck disable=SC2086
		java_is_woken $kinds a
	done
}

# Both hold in turn, each while the other waits: what was left over by one is not to disturb the next.
both_are_woken_again_and_again() {
	java_locks T1 "$1" "$2"
	for _ in 1 2 3; do
		rlock_begins r "$1" "$2"
		wait_until 20 has_waiter "$1" "$(first "$2")"
		java_unlocks T1 "$1" "$2"
		took_less 4 rlock_enters r
		java_begins T1 lock "$1" "$2"
		wait_until 20 has_waiter "$1" "$(first "$2")"
		rlock_leaves r
		took_less 4 java_enters T1
	done
	java_unlocks T1 "$1" "$2"
	nothing_is_left
}

# each_gives_up HELD WANTED NAMES: when its time is over, and not before.
each_gives_up() {
	local start
	java_locks T1 "$1" "$3"
	rlock_is_refused "$2" "$3"
	assert_output ''
	start=$(now_ms)
	rlock_is_refused "$2" "$3" -w 1s
	(($(now_ms) - start >= 1000))
	java_unlocks T1 "$1" "$3"
	rlock_locks r "$1" "$3"
	java_does false T1 try "$2" "$3"
	start=$(now_ms)
	java_does false T1 try "$2" "$3" 1000
	(($(now_ms) - start >= 1000))
	rlock_leaves r
	nothing_is_left
}

# The service ends as by kill -9; its locks last as long as Redisson's watchdog has said last.
rlock_outlives_java() {
	start_mortal_java
	java_locks T1 "$1" "$3"
	rlock_begins r "$2" "$3"
	wait_until 20 has_waiter "$2" "$(first "$3")"
	rlock_waits r
	java_dies
	rlock_enters r
	rlock_leaves r
	speak_to java
	nothing_is_left
}

java_outlives_rlock() {
	rlock_locks r "$1" "$3" -t 3s
	java_begins T1 lock "$2" "$3"
	wait_until 20 has_waiter "$2" "$(first "$3")"
	java_waits T1
	rlock_dies r
	java_enters T1
	java_unlocks T1 "$2" "$3"
	nothing_is_left
}

# A lease that nothing renews ends, whichever side waits for that.
leases_end() {
	rlock_locks r "$1" "$3" -l 3s
	java_begins T1 lock "$2" "$3"
	rlock_dies r
	java_enters T1
	java_unlocks T1 "$2" "$3"
	java_locks T1 "$1" "$3" 3000
	rlock_begins r "$2" "$3"
	rlock_enters r
	java_does false T1 held "$1" "$3"
	rlock_leaves r
	nothing_is_left
}

# No other gets in as long as the lease is renewed, which is shorter than the hold.
each_renews() {
	start_mortal_java
	java_locks T1 "$1" "$3"
	rlock_begins r "$2" "$3"
	stays 4 rlock_waits r
	java_does true T1 held "$1" "$3"
	java_unlocks T1 "$1" "$3"
	rlock_enters r
	rlock_leaves r
	speak_to java
	rlock_locks r "$1" "$3" -t 1s
	java_begins T1 lock "$2" "$3"
	java_waits T1 3000
	rlock_leaves r
	java_enters T1
	java_unlocks T1 "$2" "$3"
	nothing_is_left
}

java_enters_again() {
	java_locks T1 "$1" "$3"
	rlock_begins r "$2" "$3"
	wait_until 20 has_waiter "$2" "$(first "$3")"
	java_locks T1 "$1" "$3"
	java_does 2 T1 count "$1" "$3"
	java_unlocks T1 "$1" "$3"
	stays 0.3 rlock_waits r
	java_unlocks T1 "$1" "$3"
	took_less 4 rlock_enters r
	rlock_leaves r
	nothing_is_left
}

rlock_enters_again() {
	rm -f ./*.in ./*.out
	words "$1" "$3"
	in_background rlock "${WORDS[@]}" "${WORDS_NAMES[@]}" -- bash -c '
		stay outer; rlock "$@" -- stay inner; stay last' bash "${WORDS[@]}" "${WORDS_NAMES[@]}"
	rlock_enters outer
	java_begins T1 lock "$2" "$3"
	wait_until 20 has_waiter "$2" "$(first "$3")"
	touch "$BATS_TEST_TMPDIR/outer.out"
	rlock_enters inner
	assert_equal "$(owner_of inner)" "$(owner_of outer)"
	touch "$BATS_TEST_TMPDIR/inner.out"
	rlock_enters last
	java_waits T1 300
	touch "$BATS_TEST_TMPDIR/last.out"
	ended_with 0
	took_less 4 java_enters T1
	java_unlocks T1 "$2" "$3"
	nothing_is_left
}

# A lock without a command: acquired by one rlock, released by another.
java_is_woken_by_a_script() {
	rm -f ./*.in ./*.out
	words "$1" "$3"
	[ "${WORDS[0]}" != run ] || WORDS[0]=lock
	in_background bash -c 'rlock $0 --pid $$ $1 >token && stay held && rlock unlock $2 $1 && stay after' \
		"${WORDS[*]}" "${WORDS_NAMES[*]}" "${SERVERS[*]}"
	rlock_enters held
	java_begins T1 lock "$2" "$3"
	wait_until 20 has_waiter "$2" "$(first "$3")"
	java_waits T1 100
	touch "$BATS_TEST_TMPDIR/held.out"
	took_less 4 java_enters T1
	rlock_enters after
	touch "$BATS_TEST_TMPDIR/after.out"
	ended_with 0
	java_unlocks T1 "$2" "$3"
	nothing_is_left
}

neither_unlocks_the_others() {
	java_locks T1 "$1" "$2"
	words "$1" "$2"
	run -1 rlock unlock "${SERVERS[@]}" "${WORDS_NAMES[@]}"
	java_does true T1 held "$1" "$2"
	java_unlocks T1 "$1" "$2"
	rlock_locks r "$1" "$2"
	run -0 ask T1 unlock "$1" "$2"
	assert_output --partial IllegalMonitorStateException
	assert_equal "$(redis exists "$(first "$2")")" 1
	rlock_leaves r
	nothing_is_left
}
