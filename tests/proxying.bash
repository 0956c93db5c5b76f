# A network that loses and spoils what passes, by tests/tools/faultproxy. Sourced behind helpers.bash and
# watching.bash.

# In single quotes stands a whole script.
# shellcheck disable=SC2016

# start_proxy: RLOCK_URL leads through it from now on.
start_proxy() {
	in_background sh -c 'exec "$@" >"$BATS_TEST_TMPDIR/proxy-said"' sh faultproxy \
		"unix:$BATS_TEST_TMPDIR/proxy.sock" "unix:$SERVER_SOCKET" "unix:$BATS_TEST_TMPDIR/control"
	wait_until 5 file_says "$BATS_TEST_TMPDIR/proxy-said" ready
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/proxy.sock
}

proxy() {
	faultproxy -c "unix:$BATS_TEST_TMPDIR/control" "$@"
}

# All faults that were ordered have happened.
faults_happened() {
	proxy state | grep -q 'rules=0'
}
