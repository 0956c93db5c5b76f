# For tests beside processes that hang (tests/tools/hung): a reader of their environments waits, and nothing else.
# Sourced after helpers.bash.

# For the first line of a test, or of a setup: what hangs, hangs for those alone that run under hung_for.
needs_hung() {
	local why status=0
	not_under_valgrind 'it opens files for itself'
	HUNG=$BATS_TEST_TMPDIR/hung
	mkdir -p "$HUNG"
	why=$(hung "$HUNG" true 2>&1) || status=$?
	[ "$status" != 73 ] || skip "no call can be watched here: $why"
	assert_equal "$status" 0
	hangs $$
	in_background hung "$HUNG" cat "/proc/$$/environ" >/dev/null
	# Where it is seen, what it opens is asked for, and it waits; elsewhere it ends.
	wait_until 30 is_asked_or_over $$ "$PID"
	has_been_asked $$ || skip "what is opened can't be seen here"
	kill -KILL "$PID"
	hangs_no_more $$
}

# hangs PID...
hangs() {
	local pid
	for pid; do
		: >"$HUNG/$pid"
	done
}

# hangs_no_more PID...
hangs_no_more() {
	rm -f "${@/#/$HUNG/}"
}

# A process waits, or waited, for that process's environment.
has_been_asked() {
	[ -s "$HUNG/$1" ]
}

# is_asked_or_over PID READER: has_been_asked, or the reader has ended.
is_asked_or_over() {
	has_been_asked "$1" || is_gone "$2"
}

# An orphan, younger than all that were started before. Sets STRANGER.
hung_stranger() {
	local PID
	in_background sleep 60
	STRANGER=$PID
	hangs "$STRANGER"
}
