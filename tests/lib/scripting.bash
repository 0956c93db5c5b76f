# Scripts that acquire locks without a command. Sourced after helpers.bash.
#
#   start_script TEXT [ARG...]                       runs a script of bash in the background; sets PID
#   start_locking_script VERB [OPTION...] NAME       starts a script that holds the lock until end_commands, then exits with 5
#   script_prints LINES TEXT                         runs a script of bash; it must succeed and print these lines, joined by blanks

# start_script TEXT [ARG...]: does not wait for the script. The script can create the file "$READY", for which the caller may
# wait.
start_script() {
	export READY=$BATS_TEST_TMPDIR/ready
	rm -f "$READY"
	in_background bash -c "$1" script "${@:2}"
}

start_locking_script() {
	start_script 'rlock "$1" --pid $$ "${@:2}" && touch "$READY"; run_until_ended; exit 5' "$@"
	wait_until 5 file_exists "$READY"
}

script_prints() {
	run -0 timeout 120 bash -c "$2"
	assert_equal "${lines[*]}" "$1"
}
