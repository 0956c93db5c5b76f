# Semaphores: free and held permits, and holders of them. Sourced after helpers.bash and contenders.bash.
#
#   has_free_permits NAME COUNT, has_held_permits NAME COUNT   whether COUNT permits are free, or held
#   has_all_permits NAME COUNT               whether COUNT permits are free, none is held, and no waiter is left
#   hold_permit COUNT NAME [OPTION...]       `rlock sem` holds one of COUNT permits until end_commands; sets PID

has_free_permits() {
	redis_says "$2" get "$1"
}

has_held_permits() {
	redis_says "$2" zcard "{$1}:timeout"
}

has_all_permits() {
	has_free_permits "$1" "$2" && ! list_keys "*{$1}*" | grep -qvx -e "rlock_total:{$1}" -e ''
}

# hold_permit: returns when the command runs, which is after the permit was acquired.
hold_permit() {
	in_background rlock sem --permits "$1" "$2" "${@:3}" -- run_until_ended
	wait_until 5 has_child "$PID" run_until_ended
}
