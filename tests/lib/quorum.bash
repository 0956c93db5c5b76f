# One lock on several servers: how tests start and name the servers, and compare what each has stored. Sourced after usual.bash; its
# setup, teardown and teardown_file replace those.
#
#   start_warm_servers COUNT [OPTION...]   start_servers, with the scripts of rlock run loaded into the first three
#   hold_on_each NAME [OPTION...]          `rlock run` holds the lock on all servers; standard error goes to the file "stderr"
#   same_reply_on_all COMMAND...           prints the sorted reply of redis; fails unless all servers reply the same
#   has_keys_only_on NUMBER                whether all servers except this one are empty
#   run_counting_all STATUS TEXT COMMAND...  run; tries again if a server answered too late to be counted
#   runs_once                              a command for sh, which exits with 7

# start_warm_servers COUNT [OPTION...]: loads the scripts, since otherwise a request whose reply is lost in a test might have been
# denied with NOSCRIPT, and not carried out.
start_warm_servers() {
	start_servers "$@"
	# Acquire the lock, let another call wait for it in vain, renew it after a second, and release it: this loads the scripts
	# of all these requests. Try again if a busy machine has lost the lock.
	wait_until 15 load_scripts
}

load_scripts() {
	RLOCK_URL=$(urls_of 1 2 3) rlock run -t 3s warm -- sh -c 'env -u RLOCK_HELD rlock run -w 300ms warm -- true; sleep 1.1' \
		2>/dev/null
}

# Before each test: let the first three servers be empty, and RLOCK_URL name them.
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

hold_on_each() {
	record_stderr rlock run "${@:2}" "$1" -- run_until_ended
	wait_until 5 on_each is_held "$1"
}

# run_counting_all STATUS TEXT COMMAND...: COMMAND must exit with STATUS, and print TEXT. When one server has failed, rlock waits 0.1 s
# for the others. On a busy machine one of them can answer later: then rlock exits with 69, and counts fewer servers.
run_counting_all() {
	local tries
	for ((tries = 5; tries > 0; tries--)); do
		run "${@:3}"
		if [ "$status" != 69 ] || [[ $1 = 69 && $output = *"$2"* ]]; then break; fi
	done
	assert_equal "$status" "$1"
	assert_output --partial "$2"
}

# runs_once: appends a line to the file "ran", prints the hold count of the lock "a" on each of the first three servers, and exits
# with 7.
runs_once='echo >>ran
	for number in 1 2 3; do
		ask_redis "$BATS_FILE_TMPDIR/$number/server/redis.sock" hvals a
	done
	exit 7'

same_reply_on_all() {
	local number said=none
	for number in "${SERVERS[@]}"; do
		[ "$said" = none ] || assert_equal "$(on "$number" redis --raw "$@" | LC_ALL=C sort)" "$said"
		said=$(on "$number" redis --raw "$@" | LC_ALL=C sort)
	done
	echo "$said"
}

has_keys_only_on() {
	local number
	for number in "${SERVERS[@]}"; do
		[ "$number" = "$1" ] || on "$number" no_keys || return
	done
}
