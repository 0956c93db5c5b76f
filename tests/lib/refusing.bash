# What was typed wrongly, and that no server is asked anything then. Sourced after helpers.bash.

# start_counted_server: RLOCK_URL leads to a listener in front of the server, which counts connections.
start_counted_server() {
	local listening
	start_server
	export CONTROL=$BATS_FILE_TMPDIR/control
	"$BATS_TEST_DIRNAME/../bin/faultproxy" tcp:127.0.0.1:0 "unix:$SERVER_SOCKET" "unix:$CONTROL" >"$BATS_FILE_TMPDIR/proxy" 3>&- &
	export PROXY_PID=$!
	wait_until 10 grep -q '^ready' "$BATS_FILE_TMPDIR/proxy"
	read -r _ listening <"$BATS_FILE_TMPDIR/proxy"
	export LISTENER=${listening#tcp:}
	export RLOCK_URL=redis://$LISTENER
}

stop_counted_server() {
	kill "$PROXY_PID"
	wait "$PROXY_PID" 2>/dev/null || :
	stop_server
}

# counted_setup: as directory_setup, and no connection is counted yet.
counted_setup() {
	directory_setup
	ask_redis "$CONTROL" reset-count >/dev/null
}

# refused TEXT ARGUMENT...: status 64, nothing on standard output, one line on standard error that has
# TEXT in it, and no command started, no connection made, no command done by the server.
refused() {
	local text=$1 before
	shift
	before=$(server_commands)
	run -64 --separate-stderr rlock "$@"
	assert_equal "$output" ''
	# shellcheck disable=SC2154
	output=$stderr
	refute_output --regexp $'\n'
	assert_output --regexp '^rlock: .'
	assert_output --partial -- "$text"
	assert_equal $(($(server_commands) - before)) 1
	assert_equal "$(ask_redis "$CONTROL" count | cut -d ' ' -f 1-2)" 'connections=0 requests=0'
	refute file_exists ran
}
