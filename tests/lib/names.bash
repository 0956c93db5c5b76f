# Several names in one call, for each kind of lock. Sourced after queue.bash.

# PAIRS is for the tests; PIDS is queue.bash's.
# shellcheck disable=SC2034

# What excludes what: the verb that wants the lock, and one that holds it meanwhile.
PAIRS=('run run' 'fair fair' 'run fair' 'fair run' 'wlock wlock' 'wlock rlock' 'rlock wlock')

# start_waiter_of VERB PARTY [OPTION...] NAME...: as start_waiter, for other kinds of locks.
start_waiter_of() {
	in_background sh -c 'party=$0; exec "$@" inside "$party" 2>"$BATS_TEST_TMPDIR/said-$party"' "$2" rlock "$1" "${@:3}" --
	PIDS[$2]=$PID
}

# listeners_are COUNT: waits that were told where to listen, for whatever kind of lock.
listeners_are() {
	[ "$(redis info clients | sed -n 's/^pubsub_clients:\([0-9]*\).*/\1/p')" = "$1" ] ||
		[ "$(redis client list type pubsub | grep -c .)" = "$1" ]
}

# is_untouched NAME: nothing is held of it, and its queue is empty.
is_untouched() {
	redis_says 0 exists "$1" "$(beside rlock_holds "$1")" "$(beside rlock_writer "$1")" && has_no_queue "$1"
}
