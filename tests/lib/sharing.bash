# Parties: rlocks that hold a lock of any kind, or wait for it, for a command that says when it is in, and stays until it is let
# out; and what stands on the server. Sourced after helpers.bash, leftovers.bash and watching.bash. PARTY is a name, as "r1".

UUID='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
# The owner that a thread of a Java service is.
JAVA_CLIENT=0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e
JAVA=$JAVA_CLIENT:57

declare -gA PIDS=()     # of an rlock, by PARTY
declare -gA PARTY_OF=() # the way back
CLOCK=()                # goes before an rlock: see clocks.bash

list_keys() {
	redis --raw keys "${1:-*}" | LC_ALL=C sort
}

# ---- parties ----

# start_party PARTY VERB [OPTION...] NAME...: its messages are in the file "said-PARTY"; sets PID.
start_party() {
	in_background sh -c 'party=$0; exec "$@" inside "$party" 2>"$BATS_TEST_TMPDIR/said-$party"' \
		"$1" "${CLOCK[@]}" rlock "$2" -v "${@:3}" --
	PIDS[$1]=$PID PARTY_OF[$PID]=$1
}

await_entry() {
	wait_until "${2:-5}" is_inside "$1"
}

# admit PARTY VERB [OPTION...] NAME...: the same, and returns when it is in.
admit() {
	start_party "$@"
	await_entry "$1"
}

# queue_party PARTY VERB [OPTION...] NAME...: the same for any lock but a fair one, and returns when one more waits (for the last
# name), and listens.
queue_party() {
	local waiters listeners
	ask_server zcard "rlock_queue:{${!#}}"
	waiters=$ANSWER
	listeners=$(count_listeners)
	start_party "$@"
	wait_until 5 has_waiters "${!#}" $((waiters + 1))
	wait_until 5 has_listeners $((listeners + 1))
}

count_listeners() {
	redis client list type pubsub | grep -c . || :
}

# has_listeners COUNT: so many clients listen to a channel.
has_listeners() {
	[ "$(count_listeners)" = "$1" ]
}

# are_inside PARTY...
are_inside() {
	local party
	for party; do
		is_inside "$party" || return
	done
}

# are_waiting PARTY...: they run, and did not get in.
are_waiting() {
	local party
	for party; do
		! is_inside "$party" && is_running "${PIDS[$party]}" || return
	done
}

# is_inside_woken PARTY: it gets in since it was woken just now: what is in its way has just left. That is within a second; on a
# busy machine it may be later, but then its messages tell.
is_inside_woken() {
	took_less 1.4 wait_until 10 is_inside "$1" || was_woken "$BATS_TEST_TMPDIR/said-$1" || fail 'the waiter was not woken'
}

# let_out PARTY...: their commands end, and then the rlocks, well.
let_out() {
	local party
	for party; do
		: >"$BATS_TEST_TMPDIR/out-$party"
	done
	for party; do
		ended_with 0 "${PIDS[$party]}"
	done
}

# take_turns PARTY...: each gets in, and leaves, in this order.
take_turns() {
	while [ $# -gt 0 ]; do
		await_entry "$1"
		are_waiting "${@:2}"
		let_out "$1"
		shift
	done
}

# kill_party PARTY: at once, with its renewer and its command, as when their machine dies. The command of one that is in runs: a
# renewer that is left alone would go on.
kill_party() {
	! is_inside "$1" || wait_until 5 has_command "${PIDS[$1]}"
	kill_whole "${PIDS[$1]}"
}

# Nothing at all is left.
nothing_is_left() {
	wait_until 5 no_keys
	wait_until 5 nothing_is_listened_to
	wait_until 5 nothing_runs
}

# ---- messages ----

# record_messages CHANNEL: writes each message on it, or on all that the pattern fits, to the file "heard".
record_messages() {
	rm -f heard
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv psubscribe "$0" >heard' "$1"
	RECORDER=$PID
	wait_until 5 file_has heard '"psubscribe"'
}

# show_messages CHANNEL: "CHANNEL MESSAGE" of all so far, once those before a last one on that channel have certainly come.
show_messages() {
	redis publish "$1" end >/dev/null
	wait_until 5 file_has heard '"end"'
	kill "$RECORDER"
	sed -n 's/^"pmessage",[^,]*,"\(.*\)","\(.*\)"$/\1 \2/p' heard | grep -v ' end$'
}
