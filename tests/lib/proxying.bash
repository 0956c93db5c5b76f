# A network that loses and spoils what passes, by tests/bin/faultproxy. Sourced after helpers.bash and
# watching.bash.

# start_proxy [LISTEN]: RLOCK_URL leads through it from now on; of a tcp LISTEN it sets PROXY_PORT, and leaves RLOCK_URL.
start_proxy() {
	start_proxy_between "${1:-unix:$BATS_TEST_TMPDIR/proxy.sock}" "unix:$SERVER_SOCKET" || return
	PROXY_PORT=${LISTENED##*:}
	[ $# -gt 0 ] || export RLOCK_URL=unix://$BATS_TEST_TMPDIR/proxy.sock
}

# start_prompt_proxy [LISTEN]: the same, before all other processes, as start_server does: for faults of the network alone.
start_prompt_proxy() {
	start_proxy "$@" || return
	chrt --rr --pid 1 "$PID" 2>/dev/null || :
}

# start_tls_proxy PORT: the same, to the server of that TLS port, which it knows nothing of.
start_tls_proxy() {
	start_proxy_between tcp:127.0.0.1:0 "tcp:127.0.0.1:$1" || return
	export RLOCK_URL=rediss://localhost:${LISTENED##*:}
}

# start_proxy_between LISTEN TARGET: sets LISTENED, the address. Waits without a process of its own: there are tests that
# start a thousand.
start_proxy_between() {
	local output
	exec {output}< <(exec env --default-signal=INT,QUIT faultproxy "$1" "$2" "unix:$BATS_TEST_TMPDIR/control" 3>&-)
	PID=$!
	BACKGROUND+=("$PID")
	LISTENED=
	while read -r -t 20 -u "$output"; do
		[[ $REPLY != 'listen '* ]] || LISTENED=${REPLY#listen }
		[ "$REPLY" != ready ] || break
	done
	exec {output}<&-
	[ "$REPLY" = ready ]
}

proxy() {
	ask_redis "$BATS_TEST_TMPDIR/control" "$@"
}

# All faults that were ordered have happened.
faults_happened() {
	proxy state | grep -q 'rules=0'
}

# Words that stand in one kind of request only, for the plain or fair lock "a". A renewal has no word of its own: while no
# call acquires or releases the lock it is the one that names the holds.
ACQUIRE='redisson_lock_token:{a}'
RELEASE='redisson_lock__channel:{a}!redisson_lock_token:{a}'
RENEW='rlock_holds:{a}'
