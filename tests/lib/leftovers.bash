# What is left of rlock, and how it ended: for tests that look for more than an exit status. Sourced
# after helpers.bash.

# find_test_processes NAME...: sets TEST_PROCESSES to the pids of processes with one of these names that are of this test, without a process: each test
# looks at its end. They are known by the runtime directory in their environment, which is another one in each test.
find_test_processes() {
	local pid name environment
	TEST_PROCESSES=()
	for pid in /proc/[0-9]*; do
		# It may have gone.
		{ read -r name <"$pid/comm"; } 2>/dev/null || continue
		[[ " $* " = *" $name "* ]] || continue
		{ mapfile -t -d '' environment <"$pid/environ"; } 2>/dev/null || continue
		[[ " ${environment[*]} " != *" RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR "* ]] || TEST_PROCESSES+=("${pid#/proc/}")
	done
}

# list_test_processes [NAME...]: these pids, of rlock and its renewers or of those with one of these names.
list_test_processes() {
	find_test_processes "${@:-rlock rlock-renewer rlock-renewer-p}"
	[ ${#TEST_PROCESSES[@]} -eq 0 ] || printf '%s\n' "${TEST_PROCESSES[@]}"
}

renewers() {
	list_test_processes rlock-renewer rlock-renewer-p
}

no_rlock_runs() {
	find_test_processes rlock rlock-renewer rlock-renewer-p
	[ ${#TEST_PROCESSES[@]} -eq 0 ]
}

# How many holds without a command are written down in the runtime directory.
count_hold_files() {
	find "$RLOCK_RUNTIME_DIR" -name 'hold-*' 2>/dev/null | wc -l
}

no_hold_files() {
	[ "$(count_hold_files)" = 0 ]
}

# As common_teardown, and fails when something of ours runs on.
teardown_and_check_processes() {
	common_teardown
	wait_until 10 no_rlock_runs
}

# assert_one_line REGEXP: of what `run` ran, one line and no more was heard.
assert_one_line() {
	assert_equal "${#lines[@]}" 1
	assert_output --regexp "$1"
}

# One line, and it is rlock's.
assert_one_message() {
	assert_one_line '^rlock: .'
}

# assert_between LEAST VALUE MOST
assert_between() {
	assert [ "$1" -le "$2" ]
	assert [ "$2" -le "$3" ]
}

# ended_with STATUS [PID]: the background process ends, with that status.
ended_with() {
	local status=0 pid=${2:-$PID}
	wait_until 30 is_gone "$pid" || return
	wait "$pid" 2>/dev/null || status=$?
	[ "$status" = "$1" ] || fail "ended with $status, not $1"
}

# all_ended_with STATUS: all background processes have ended, each with that status, however long they take.
all_ended_with() {
	local pid
	wait "${BACKGROUND[@]}" 2>/dev/null || :
	for pid in "${BACKGROUND[@]}"; do
		ended_with "$1" "$pid" || return
	done
}

# has_waiters NAME [COUNT]: so many wait for the lock, which is no fair one, or for permits (those that got it in the meantime left).
has_waiters() {
	redis_says "${2:-1}" zcard "rlock_queue:{$1}"
}

# has_queue_length NAME COUNT: so many are in the queue of the fair lock.
has_queue_length() {
	redis_says "$2" llen "$(key_of_lock redisson_lock_queue "$1")"
}

has_hold_count() {
	redis_says "$2" hvals "$1"
}

# A client that is no rlock has the plain lock.
hold_by_foreign_client() {
	redis hset "$1" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1 >/dev/null
	redis pexpire "$1" 30000 >/dev/null
}

# That client releases it.
release_by_foreign_client() {
	redis del "$1" >/dev/null
	redis publish "redisson_lock__channel:{$1}" 0 >/dev/null
}

# ---- keys ----

# keys_are KEY...: these are on the server, and no others.
keys_are() {
	assert_equal "$(redis keys '*' | sort)" "$(printf '%s\n' "$@" | sort)"
}

# What all keys contain, but for their times to live.
show_contents() {
	redis eval '
		local keys, found = redis.call("KEYS", "*"), {}
		table.sort(keys)
		for i, key in ipairs(keys) do
			found[i] = key .. " " .. redis.sha1hex(redis.call("DUMP", key))
		end
		return found' 0
}
