# Contenders: rlocks that hold a lock of any kind, or wait for it. Their command creates a file when it starts, and runs until
# finish_contenders. Sourced after helpers.bash, leftovers.bash and watching.bash. CONTENDER is a name, such as r1.
#
#   start_contender CONTENDER VERB [OPTION...] NAME...   starts a contender; sets PID
#   start_holder CONTENDER VERB [OPTION...] NAME...      start_contender; waits until it holds the lock
#   queue_contender CONTENDER VERB [OPTION...] NAME...   start_contender; waits until it is queued and subscribed (not for fair locks)
#   wait_until_entered CONTENDER [SECONDS]   waits until its command has started
#   have_entered CONTENDER...                whether the commands of all these contenders have started
#   are_waiting CONTENDER...                 whether all these contenders run, and none of their commands has started
#   enters_when_woken CONTENDER              the contender must acquire the lock within 1.4 s, or after a notification
#   finish_contenders CONTENDER...           ends the commands of these contenders; each rlock must exit with 0
#   enter_in_order CONTENDER...              each must acquire the lock, and release it, in this order
#   kill_contender CONTENDER                 kills the contender's rlock, its renewer and its command
#   count_subscribers, has_subscribers COUNT print how many clients are subscribed; compare that
#   list_keys [PATTERN]                      prints the keys on the server, sorted
#   nothing_is_left                          waits until no key, no subscriber and no rlock is left
#   record_messages PATTERN, show_messages CHANNEL   record and print the messages that are published

UUID='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
# The client id of a Java service that uses Redisson, and the owner of one of its threads.
JAVA_CLIENT=0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e
JAVA=$JAVA_CLIENT:57

# PIDS: the pid of each CONTENDER's rlock. CONTENDER_OF: the CONTENDER of each such pid.
declare -gA PIDS=() CONTENDER_OF=()
# CLOCK: words that start_contender puts before the command line of rlock (see clocks.bash).
CLOCK=()

list_keys() {
	redis --raw keys "${1:-*}" | LC_ALL=C sort
}

# ---- contenders ----

# start_contender CONTENDER VERB [OPTION...] NAME...: standard error goes to the file "stderr-CONTENDER".
start_contender() {
	in_background sh -c 'contender=$0; exec "$@" inside "$contender" 2>"$BATS_TEST_TMPDIR/stderr-$contender"' \
		"$1" "${CLOCK[@]}" rlock "$2" -v "${@:3}" --
	PIDS[$1]=$PID CONTENDER_OF[$PID]=$1
}

wait_until_entered() {
	wait_until "${2:-5}" has_entered "$1"
}

start_holder() {
	start_contender "$@"
	wait_until_entered "$1"
}

# queue_contender CONTENDER VERB [OPTION...] NAME...: with several names, waits for the queue of the last name.
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

has_subscribers() {
	[ "$(count_subscribers)" = "$1" ]
}

have_entered() {
	local contender
	for contender; do
		has_entered "$contender" || return
	done
}

are_waiting() {
	local contender
	for contender; do
		! has_entered "$contender" && is_running "${PIDS[$contender]}" || return
	done
}

# enters_when_woken CONTENDER: call it just after the release of the lock. On a busy machine the acquisition can take longer than
# 1.4 s. Then the contender's messages must show that a notification woke it.
enters_when_woken() {
	takes_less_than 1.4 wait_until 10 has_entered "$1" || wait_until 5 was_woken "$BATS_TEST_TMPDIR/stderr-$1" || fail 'the waiter was not woken'
}

finish_contenders() {
	local contender
	for contender; do
		: >"$BATS_TEST_TMPDIR/out-$contender"
	done
	for contender; do
		ended_with 0 "${PIDS[$contender]}"
	done
}

enter_in_order() {
	while [ $# -gt 0 ]; do
		wait_until_entered "$1"
		are_waiting "${@:2}"
		finish_contenders "$1"
		shift
	done
}

# kill_contender CONTENDER: kills all its processes, as a power failure does. If CONTENDER holds the lock, first waits until its
# command can be found: otherwise the command would not be killed, and would continue.
kill_contender() {
	! has_entered "$1" || wait_until 5 has_command "${PIDS[$1]}"
	kill_whole "${PIDS[$1]}"
}

nothing_is_left() {
	wait_until 5 no_keys
	wait_until 5 no_subscribers
	wait_until 5 no_rlock_runs
}

# ---- messages ----

# record_messages PATTERN: appends each message on a channel that matches PATTERN to the file "heard".
record_messages() {
	rm -f heard
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv psubscribe "$0" >heard' "$1"
	RECORDER=$PID
	wait_until 5 file_contains heard '"psubscribe"'
}

# show_messages CHANNEL: prints "CHANNEL MESSAGE" for each message recorded so far. Publishes one more message, "end", and waits
# for it: then all others have arrived.
show_messages() {
	redis publish "$1" end >/dev/null
	wait_until 5 file_contains heard '"end"'
	kill "$RECORDER"
	sed -n 's/^"pmessage",[^,]*,"\(.*\)","\(.*\)"$/\1 \2/p' heard | grep -v ' end$'
}
