# For the tests of read and write locks: which is in, which waits, and what stands on the server. Sourced after
# helpers.bash, leftovers.bash and watching.bash. GUEST is the name of a process of tests/tools/inside.

# UUID and JAVA are for the tests.
# shellcheck disable=SC2034

UUID='[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}'
# The owner that a thread of a Java service is.
JAVA=0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e:57

is_mode() {
	redis_says "$2" hget "$1" mode
}

list_keys() {
	redis --raw keys "${1:-*}" | LC_ALL=C sort
}

# count_records NAME: how many holds have a record. The holds hash has the ids of readers' holds, too, with a blank in front.
count_records() {
	redis hvals "$(beside rlock_holds "$1")" | grep -c '^[^ ]'
}

# owner_of NAME PID: of the holder that this rlock is.
owner_of() {
	redis hkeys "$1" | sed 's/:write$//' | grep -m 1 -xE "$UUID:$2"
}

# ---- guests ----

# start_guest GUEST VERB NAME [OPTION...]: `rlock VERB` with that guest, in the background, its messages in the file
# "said-GUEST"; sets PID.
start_guest() {
	in_background sh -c 'guest=$1; shift; exec "$@" inside "$guest" 2>"$BATS_TEST_TMPDIR/said-$guest"' sh \
		"$1" rlock "$2" "${@:4}" "$3" --
}

# admit_guest GUEST VERB NAME [OPTION...]: the same, and returns when the guest is in.
admit_guest() {
	start_guest "$@"
	wait_until 5 is_inside "$1" || {
		sed 's/^/it said: /' "$BATS_TEST_TMPDIR/said-$1" >&2
		ps -o pid,ppid,cls,stat,wchan:20,etime,args --ppid "$PID" -p "$PID" >&2
		return 1
	}
}

# queue_guest GUEST VERB NAME [OPTION...]: the same, and returns when one more waits for the lock.
queue_guest() {
	local waiters LISTENERS
	find_listeners
	waiters=${#LISTENERS[@]}
	start_guest "$@"
	wait_until 5 has_listeners $((waiters + 1))
}

is_outside() {
	! is_inside "$1"
}

all_are_inside() {
	local guest
	for guest; do
		is_inside "$guest" || return
	done
}

let_guest_out() {
	local guest
	for guest; do
		: >"$BATS_TEST_TMPDIR/out-$guest"
	done
}

# enters_woken GUEST: a waiter that was started with -v; what is in its way has just left.
enters_woken() {
	soon_or_woken 1.5 "$BATS_TEST_TMPDIR/said-$1" is_inside "$1"
}

# Sets LISTENERS to the processes that wait for a read or write lock: those that listen.
find_listeners() {
	LISTENERS=()
	ask_server client list type pubsub
	[ -z "$ANSWER" ] || mapfile -t LISTENERS <<<"$ANSWER"
}

# has_listeners [COUNT]
has_listeners() {
	local LISTENERS
	find_listeners
	[ ${#LISTENERS[@]} = "${1:-1}" ]
}

# stays_outside SECONDS GUEST: it is not inside for so long.
stays_outside() {
	stays "$1" is_outside "$2"
}

# RLOCK_HELD of the guest that this rlock has.
inherited_holds_of() {
	tr '\0' '\n' <"/proc/$(command_of "$1")/environ" | sed -n 's/^RLOCK_HELD=//p'
}

# kill_holder PID: rlock, renewer and command die, as when their machine does. The lock is on the server before all three
# run, and a renewer that is left alone would go on.
kill_holder() {
	wait_until 5 has_command "$1"
	kill_whole "$1"
}

# ---- messages ----

# record_channel CHANNEL: writes each message on it to the file "heard".
record_channel() {
	rm -f "$BATS_TEST_TMPDIR/heard"
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv subscribe "$0" >"$BATS_TEST_TMPDIR/heard"' "$1"
	wait_until 5 file_has "$BATS_TEST_TMPDIR/heard" '"subscribe"'
}

# show_channel CHANNEL: the messages of record_channel so far, on one line, once those before a last one have certainly come.
show_channel() {
	redis publish "$1" end >/dev/null
	wait_until 5 file_has "$BATS_TEST_TMPDIR/heard" '"end"'
	sed -n 's/^"message",.*,"\(.*\)"$/\1/p' "$BATS_TEST_TMPDIR/heard" | grep -v '^end$' | paste -s -d ' '
}
