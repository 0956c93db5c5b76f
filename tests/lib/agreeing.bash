# One lock on several servers: how they are started and named, and what each of them has of the lock. Sourced after
# usual.bash.

# start_warm_servers COUNT: as start_servers. From here on the first three know the scripts: a request whose reply gets lost
# has been carried out.
start_warm_servers() {
	start_servers "$@"
	# One gives up a wait: a hold that a quorum granted before all had answered is released by that script, too.
	RLOCK_URL=$(urls_of 1 2 3) rlock run -t 3s warm -- sh -c 'env -u RLOCK_HELD rlock run -w 300ms warm -- true; sleep 1.1' \
		2>/dev/null
}

# In the place of those of usual.bash. The first three servers are empty, and RLOCK_URL names them.
setup() {
	directory_setup
	VIA=()
	use_servers 1 2 3
	on_each ask_server flushall
}

teardown() {
	local number
	for number in "${SERVERS[@]}"; do
		thaw_server "$number" 2>/dev/null || :
	done
	teardown_and_check_processes
}

teardown_file() { stop_servers; }

# hold_on_each NAME [OPTION...]: as hold_in_background, on all servers, messages in the file "stderr".
hold_on_each() {
	record_stderr rlock run "${@:2}" "$1" -- run_until_ended
	wait_until 5 on_each is_held "$1"
}

# A command that counts how often it ran, prints the hold counts of all servers and exits with 7.
runs_once='echo >>ran
	for number in 1 2 3; do
		ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" hvals a
	done
	exit 7'

# same_reply_on_all COMMAND [ARG...]: prints what redis says, sorted, which is the same on all servers.
same_reply_on_all() {
	local number said=none
	for number in "${SERVERS[@]}"; do
		[ "$said" = none ] || assert_equal "$(on "$number" redis --raw "$@" | LC_ALL=C sort)" "$said"
		said=$(on "$number" redis --raw "$@" | LC_ALL=C sort)
	done
	echo "$said"
}

# has_keys_only_on NUMBER: the others have nothing.
has_keys_only_on() {
	local number
	for number in "${SERVERS[@]}"; do
		[ "$number" = "$1" ] || on "$number" no_keys || return
	done
}
