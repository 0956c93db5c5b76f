# For tests beside processes that hang (tests/bin/hung): a reader of their environments waits, and nothing else.
# Sourced after helpers.bash.

# For the first line of a test, or of a setup: HUNG is the directory of what hangs, for those alone that run under hung.
needs_hung() {
	needs_refuse
	HUNG=$BATS_TEST_TMPDIR/hung
	mkdir -p "$HUNG"
	hangs $$
	in_background hung "$HUNG" cat "/proc/$$/environ" >/dev/null
	wait_until 30 test -s "$HUNG/$$"
	kill -KILL "$PID"
	rm "$HUNG/$$"
}

# hangs PID...
hangs() {
	local pid
	for pid; do
		: >"$HUNG/$pid"
	done
}

# An orphan, younger than all that were started before.
hung_stranger() {
	local PID
	in_background sleep 60
	hangs "$PID"
}
