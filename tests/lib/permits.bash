# Semaphores: how many permits are free and held, and holders of them. Sourced after helpers.bash and contenders.bash.

# has_free_permits NAME COUNT
has_free_permits() {
	redis_says "$2" get "$1"
}

# has_held_permits NAME COUNT
has_held_permits() {
	redis_says "$2" zcard "{$1}:timeout"
}

# has_all_permits NAME COUNT: no permit is held, no waiter left, and the counter is that.
has_all_permits() {
	has_free_permits "$1" "$2" && ! list_keys "*{$1}*" | grep -qvx -e "rlock_total:{$1}" -e ''
}

# hold_permit COUNT NAME [OPTION...]: until end_commands. Sets PID. The server has the permit before the command runs.
hold_permit() {
	in_background rlock sem --permits "$1" "$2" "${@:3}" -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
}
