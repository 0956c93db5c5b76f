# Fencing tokens: the counters that they come from. Sourced after helpers.bash.

# counter NAME
counter() {
	redis get "redisson_lock_token:{$1}"
}

# Of the named locks only the counters are left, and those for good.
only_counters() {
	local name
	for name; do
		redis_says -1 pttl "redisson_lock_token:{$name}" || return
	done
	redis_says $# dbsize
}
