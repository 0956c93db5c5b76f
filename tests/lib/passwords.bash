# Users with a password, and checks that a denied login changes nothing. Sourced after helpers.bash and rights.bash, by files whose
# server listens on PORT. Its setup_file, setup and teardown replace those of usual.bash.
#
#   assert_refused STATUS TEXT   `run` exited with STATUS and printed one line with TEXT and without a secret; nothing ran

WRONG=wr0ng-w0rd

setup_file() { start_server_at_port; }
teardown() { common_teardown; }

# Before each test: let the server have no password, and no user but the default one. Sets PLACE to the server's HOST:PORT.
setup() {
	umask 077 # for password files
	REDISCLI_AUTH=$SECRET redis config set requirepass '' >/dev/null 2>&1
	directory_setup
	redis acl deluser ci >/dev/null
	redis script flush >/dev/null
	redis acl log reset >/dev/null
	PLACE=127.0.0.1:$PORT
	export RLOCK_URL=redis://$PLACE
}

assert_refused() {
	assert_equal "$status" "$1"
	assert_one_message
	assert_output --partial -- "$2"
	refute_output --partial "$SECRET"
	refute_output --partial "$WRONG"
	refute file_exists ran
}
