# Users of the server with a password, and that nothing came of one which it denied. Sourced after helpers.bash and
# rights.bash, by files whose server listens on PORT.

WRONG=wr0ng-w0rd

setup_file() { start_server_at_port; }
teardown() { common_teardown; }

# No password is wanted, and there is no user but the default one. Sets PLACE, the server's address.
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

# assert_refused STATUS TEXT: what run has run said one line with TEXT, which shows no secret.
assert_refused() {
	assert_equal "$status" "$1"
	assert_one_message
	assert_output --partial -- "$2"
	refute_output --partial "$SECRET"
	refute_output --partial "$WRONG"
	refute file_exists ran
}
