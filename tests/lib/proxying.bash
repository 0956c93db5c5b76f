# A network that loses and spoils what passes, by tests/tools/faultproxy. Sourced behind helpers.bash and
# watching.bash.

# start_proxy: RLOCK_URL leads through it from now on. Waits without a process of its own: there are tests that
# start a thousand.
start_proxy() {
	local output
	exec {output}< <(exec env --default-signal=INT,QUIT faultproxy "unix:$BATS_TEST_TMPDIR/proxy.sock" \
		"unix:$SERVER_SOCKET" "unix:$BATS_TEST_TMPDIR/control" 3>&-)
	PID=$!
	BACKGROUND+=("$PID")
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/proxy.sock
	while read -r -t 5 -u "$output"; do
		[ "$REPLY" != ready ] || break
	done
	exec {output}<&-
	[ "$REPLY" = ready ]
}

proxy() {
	faultproxy -c "unix:$BATS_TEST_TMPDIR/control" "$@"
}

# All faults that were ordered have happened.
faults_happened() {
	proxy state | grep -q 'rules=0'
}
