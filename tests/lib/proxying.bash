# A network with faults, played by tests/bin/faultproxy. Sourced after helpers.bash and watching.bash.
#
#   start_proxy [LISTEN]              starts a proxy to the file's server; RLOCK_URL then leads through it
#   start_realtime_proxy [LISTEN]     as start_proxy, with real-time priority for the proxy
#   start_tls_proxy PORT              starts a proxy that forwards bytes to a TLS port; RLOCK_URL then leads through it
#   start_proxy_between LISTEN TARGET starts a proxy; sets LISTENED, the address that it listens on
#   proxy COMMAND...                  sends a command to the proxy, such as a fault
#   faults_happened                   whether all faults that were ordered have happened
#   find_other_attempt FILE           sets OTHER_ATTEMPT, a text for rules. It matches attempts for the plain or fair lock "a" whose hold id is
#                                     not that of the last attempt in FILE, a log of the proxy

# start_proxy [LISTEN]: if LISTEN is a TCP address, sets PROXY_PORT and leaves RLOCK_URL unchanged.
start_proxy() {
	start_proxy_between "${1:-unix:$BATS_TEST_TMPDIR/proxy.sock}" "unix:$SERVER_SOCKET" || return
	PROXY_PORT=${LISTENED##*:}
	[ $# -gt 0 ] || export RLOCK_URL=unix://$BATS_TEST_TMPDIR/proxy.sock
}

# start_realtime_proxy: the proxy has real-time priority, so that a busy machine adds no delay to those that the test has ordered.
start_realtime_proxy() {
	start_proxy "$@" || return
	run_in_real_time "$PID"
}

start_tls_proxy() {
	start_proxy_between tcp:127.0.0.1:0 "tcp:127.0.0.1:$1" || return
	export RLOCK_URL=rediss://localhost:${LISTENED##*:}
}

# start_proxy_between: waits until the proxy has printed that it is ready. Polling would be slower, and some tests start a thousand
# proxies.
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

faults_happened() {
	proxy state | grep -q 'rules=0'
}

# find_other_attempt: call it while the waiter is stopped. (A rule for the second attempt from now would be wrong: the waiter may be stopped
# between the requests of one attempt to several servers.)
find_other_attempt() {
	local id
	id=$(sed -n '/ undo /d; s/.*redisson_lock_token:{a} .* \([0-9a-f]\{32\}\) .*/\1/p' "$1" | tail -n 1)
	[ -n "$id" ] || return
	OTHER_ATTEMPT="$ACQUIRE!$id"
}

# Texts by which the proxy recognises requests for the plain or fair lock "a". RENEW does not occur only in renewals, but in all
# requests that name the hash of holds: use RENEW only while no call acquires or releases the lock.
ACQUIRE='redisson_lock_token:{a}'
RELEASE='redisson_lock__channel:{a}!redisson_lock_token:{a}'
RENEW='rlock_holds:{a}'
