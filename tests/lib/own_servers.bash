# Servers of one test alone, for what another test would suffer from, or for a second one. Sourced after helpers.bash.

# own_server [OPTION...]: the test's server in place of the file's; at the same socket again after it was killed. Arguments
# as start_server.
own_server() {
	BATS_FILE_TMPDIR=$BATS_TEST_TMPDIR start_server "$@"
	BACKGROUND+=("$SERVER_PID")
}

kill_server() {
	kill -s KILL "$SERVER_PID"
	wait "$SERVER_PID" || :
}

# start_second_server [OPTION...]: one more server; sets OTHER, its socket.
start_second_server() {
	export OTHER=$BATS_TEST_TMPDIR/other.sock
	in_background redis-server --port 0 --unixsocket "$OTHER" --save '' --appendonly no \
		--dir "$BATS_TEST_TMPDIR" --logfile "$BATS_TEST_TMPDIR/other.log" "$@"
	wait_until 10 ask_redis "$OTHER" ping >/dev/null 2>&1
}
