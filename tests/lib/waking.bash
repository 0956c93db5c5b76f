# Waiters in the queue of a plain or write lock: which of them listen, and in which order they have the lock. Sourced after
# helpers.bash, leftovers.bash and watching.bash.

# SOON is for the tests.
# shellcheck disable=SC2034

# A try that is due anyway comes after 2 s: what was woken is there sooner.
SOON=1.6

# hold_until_let_go VERB NAME: an rlock holds the lock, of whatever kind; sets PID.
hold_until_let_go() {
	in_background rlock "$1" "$2" -- until_let_go
	wait_until 5 is_held "$2"
}

# How many of the waiters in the queue listen.
live_waiters() {
	redis eval '
		local live = 0
		for _, id in ipairs(redis.call("zrange", KEYS[1], 0, -1)) do
			live = live + redis.call("pubsub", "numsub", ARGV[1] .. ":" .. id)[2]
		end
		return live' 1 "rlock_queue:{$1}" "redisson_lock__channel:{$1}"
}

# has_live_waiters NAME COUNT
has_live_waiters() {
	[ "$(live_waiters "$1")" = "$2" ]
}

# wait_as WAITER NAME [OPTION...]: a waiter in the background, which writes its number into "turns" when it has the lock,
# and keeps it until the file "out" is there. Sets PID. Returns when it is in the queue.
wait_as() {
	local waiters
	waiters=$(live_waiters "$2")
	in_background rlock run "${@:3}" "$2" -- sh -c 'echo "$1" >>turns; [ -e out ] || comes_true test -e out' sh "$1"
	wait_until 5 has_live_waiters "$2" $((waiters + 1))
}

# had_turns WAITER...: these, in this order.
had_turns() {
	[ "$(cat turns 2>/dev/null)" = "$(printf '%s\n' "$@")" ]
}
