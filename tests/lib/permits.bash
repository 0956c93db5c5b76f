# Semaphores: how many permits are free and held, and holders of them. Sourced after helpers.bash and sharing.bash.

# free_permits NAME: prints the counter.
free_permits() {
	redis get "$1"
}

# has_free NAME COUNT
has_free() {
	[ "$(free_permits "$1")" = "$2" ]
}

# held_permits NAME: prints how many are in the set.
held_permits() {
	redis zcard "{$1}:timeout"
}

# has_held NAME COUNT
has_held() {
	[ "$(held_permits "$1")" = "$2" ]
}

# has_more_held NAME COUNT
has_more_held() {
	(($(held_permits "$1") > $2))
}

# is_whole NAME COUNT: no permit is held, no waiter left, and the counter is that.
is_whole() {
	has_free "$1" "$2" && ! list_keys "*{$1}*" | grep -qvx -e "rlock_total:{$1}" -e ''
}

# hold_permit COUNT NAME [OPTION...]: until let_go. Sets PID. The server has the permit before the command runs.
hold_permit() {
	local held
	held=$(held_permits "$2")
	in_background rlock sem --permits "$1" "$2" "${@:3}" -- until_let_go
	wait_until 5 has_more_held "$2" "$held"
	wait_until 5 is_above "$PID" until_let_go
}

# java_takes_permit NAME ID DEADLINE_MS: a thread of a Java service acquires one of RPermitExpirableSemaphore.
java_takes_permit() {
	redis eval '
		redis.call("decrby", KEYS[1], 1)
		redis.call("zadd", KEYS[2], ARGV[2], ARGV[1])' 2 "$1" "{$1}:timeout" "$2" "$3"
}
