# Servers that only one test uses: it kills or fills one, or needs a second one. Sourced after helpers.bash.
#
#   start_own_server [OPTION...]            starts a server that replaces the file's server for this test
#   kill_server                       kills the server that start_own_server has started
#   freeze, unfreeze                  SIGSTOP and SIGCONT to that server
#   start_second_server [OPTION...]   starts one more server; sets OTHER, its socket

# start_own_server [OPTION...]: takes the arguments of start_server. If it is called again after kill_server, the new server has
# the same socket.
start_own_server() {
	BATS_FILE_TMPDIR=$BATS_TEST_TMPDIR start_server "$@"
	BACKGROUND+=("$SERVER_PID")
}

kill_server() {
	kill -s KILL "$SERVER_PID"
	wait "$SERVER_PID" || :
}

freeze() {
	kill -s STOP "$SERVER_PID"
}

unfreeze() {
	kill -s CONT "$SERVER_PID"
}

start_second_server() {
	export OTHER=$BATS_TEST_TMPDIR/other.sock
	in_background redis-server --port 0 --unixsocket "$OTHER" --save '' --appendonly no \
		--dir "$BATS_TEST_TMPDIR" --logfile "$BATS_TEST_TMPDIR/other.log" "$@"
	wait_until 10 ask_redis "$OTHER" ping >/dev/null 2>&1
}
