# Locks without a command: scripts in the background that acquire them. Sourced after helpers.bash.

# start_script TEXT [ARG...]: a script in the background; sets PID. It says by `touch "$READY"`, the file "ready", how far
# it is.
start_script() {
	export READY=$BATS_TEST_TMPDIR/ready
	rm -f "$READY"
	in_background bash -c "$1" script "${@:2}"
}

# start_locking_script VERB [OPTION...] NAME: has a lock, and then waits to be let go.
start_locking_script() {
	start_script 'rlock "$1" --pid $$ "${@:2}" && touch "$READY"; run_until_ended; exit 5' "$@"
	wait_until 5 file_exists "$READY"
}

# script_prints LINES TEXT: a script of bash has succeeded, and printed these lines, with blanks between.
script_prints() {
	run -0 timeout 30 bash -c "$2"
	assert_equal "${lines[*]}" "$1"
}
