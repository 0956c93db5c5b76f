# Contenders: rlocks that hold a lock of any kind, or wait for it, for a command that says when it is in, and stays until it is let
# out; and what stands on the server. Sourced after helpers.bash, leftovers.bash and watching.bash. CONTENDER is a name, as "r1".

UUID='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
# The owner that a thread of a Java service is.
JAVA_CLIENT=0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e
JAVA=$JAVA_CLIENT:57

declare -gA PIDS=()     # of an rlock, by CONTENDER
declare -gA CONTENDER_OF=() # the way back
CLOCK=()                # goes before an rlock: see clocks.bash

list_keys() {
	redis --raw keys "${1:-*}" | LC_ALL=C sort
}

# ---- contenders ----

# start_contender CONTENDER VERB [OPTION...] NAME...: its messages are in the file "stderr-CONTENDER"; sets PID.
start_contender() {
	in_background sh -c 'contender=$0; exec "$@" inside "$contender" 2>"$BATS_TEST_TMPDIR/stderr-$contender"' \
		"$1" "${CLOCK[@]}" rlock "$2" -v "${@:3}" --
	PIDS[$1]=$PID CONTENDER_OF[$PID]=$1
}

wait_until_entered() {
	wait_until "${2:-5}" has_entered "$1"
}

# start_holder CONTENDER VERB [OPTION...] NAME...: the same, and returns when it is in.
start_holder() {
	start_contender "$@"
	wait_until_entered "$1"
}

# queue_contender CONTENDER VERB [OPTION...] NAME...: the same for any lock but a fair one, and returns when one more waits (for the last
# name), and listens.
queue_contender() {
	local waiters listeners
	ask_server zcard "rlock_queue:{${!#}}"
	waiters=$ANSWER
	listeners=$(count_subscribers)
	start_contender "$@"
	wait_until 5 has_waiters "${!#}" $((waiters + 1))
	wait_until 5 has_subscribers $((listeners + 1))
}

count_subscribers() {
	redis client list type pubsub | grep -c . || :
}

# has_subscribers COUNT: so many clients listen to a channel.
has_subscribers() {
	[ "$(count_subscribers)" = "$1" ]
}

# have_entered CONTENDER...
have_entered() {
	local contender
	for contender; do
		has_entered "$contender" || return
	done
}

# are_waiting CONTENDER...: they run, and did not get in.
are_waiting() {
	local contender
	for contender; do
		! has_entered "$contender" && is_running "${PIDS[$contender]}" || return
	done
}

# enters_when_woken CONTENDER: it gets in since it was woken just now: what is in its way has just left. That is within a second; on a
# busy machine it may be later, but then its messages tell.
enters_when_woken() {
	takes_less_than 1.4 wait_until 10 has_entered "$1" || was_woken "$BATS_TEST_TMPDIR/stderr-$1" || fail 'the waiter was not woken'
}

# finish_contenders CONTENDER...: their commands end, and then the rlocks, well.
finish_contenders() {
	local contender
	for contender; do
		: >"$BATS_TEST_TMPDIR/out-$contender"
	done
	for contender; do
		ended_with 0 "${PIDS[$contender]}"
	done
}

# enter_in_order CONTENDER...: each gets in, and leaves, in this order.
enter_in_order() {
	while [ $# -gt 0 ]; do
		wait_until_entered "$1"
		are_waiting "${@:2}"
		finish_contenders "$1"
		shift
	done
}

# kill_contender CONTENDER: at once, with its renewer and its command, as when their machine dies. The command of one that is in runs: a
# renewer that is left alone would go on.
kill_contender() {
	! has_entered "$1" || wait_until 5 has_command "${PIDS[$1]}"
	kill_whole "${PIDS[$1]}"
}

# Nothing at all is left.
nothing_is_left() {
	wait_until 5 no_keys
	wait_until 5 no_subscribers
	wait_until 5 no_rlock_runs
}

# ---- messages ----

# record_messages CHANNEL: writes each message on it, or on all that the pattern fits, to the file "heard".
record_messages() {
	rm -f heard
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv psubscribe "$0" >heard' "$1"
	RECORDER=$PID
	wait_until 5 file_contains heard '"psubscribe"'
}

# show_messages CHANNEL: "CHANNEL MESSAGE" of all so far, once those before a last one on that channel have certainly come.
show_messages() {
	redis publish "$1" end >/dev/null
	wait_until 5 file_contains heard '"end"'
	kill "$RECORDER"
	sed -n 's/^"pmessage",[^,]*,"\(.*\)","\(.*\)"$/\1 \2/p' heard | grep -v ' end$'
}
