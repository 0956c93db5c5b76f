# What rlock leaves behind, and how processes ended. Sourced after helpers.bash.
#
#   list_test_processes [NAME...]     prints the pids of this test's processes with these names; default: rlock, its renewers and rlock-command
#   renewers                          prints the pids of this test's renewers
#   find_only_renewer                 waits until one renewer of this test runs; sets RENEWER, its pid
#   no_rlock_runs                     whether no rlock and no renewer of this test runs
#   count_hold_files, no_hold_files   print how many hold files are in the runtime directory; whether there is none
#   teardown_and_check_processes      common_teardown; fails if an rlock of the test still runs
#   assert_one_line REGEXP            asserts that the output of `run` is exactly one line, which matches
#   assert_one_message                asserts that the output of `run` is exactly one line, which starts with "rlock: "
#   assert_between MIN VALUE MAX      asserts that VALUE is from MIN to MAX
#   assert_ttl MIN_MS TTL_MS MAX_MS   the same for a TTL, where the clock may be set back a little
#   ended_with STATUS [PID]           waits until the background process has ended; fails unless its status is STATUS
#   all_ended_with STATUS             as ended_with, for all background processes
#   has_waiters NAME [COUNT]          whether COUNT (1) rlocks wait for a lock of any kind but fair
#   has_queue_length NAME COUNT       whether the queue of a fair lock has COUNT waiters
#   has_hold_count NAME COUNT         whether the only holder of a plain lock has this hold count
#   hold_by_foreign_client NAME       a client that is not rlock acquires the plain lock
#   release_by_foreign_client NAME    that client releases it
#   keys_are KEY...                   asserts that the server has exactly these keys
#   digest_keys                     prints a digest of each key, which does not change with its TTL

# find_test_processes NAME...: sets TEST_PROCESSES to the pids of this test's processes with these names. RLOCK_RUNTIME_DIR in their
# environment identifies the test. Starts no process, since each test calls it in teardown.
find_test_processes() {
	local pid name environment
	TEST_PROCESSES=()
	for pid in /proc/[0-9]*; do
		# The process can have ended since the shell expanded the pattern.
		{ read -r name <"$pid/comm"; } 2>/dev/null || continue
		[[ " $* " = *" $name "* ]] || continue
		{ mapfile -t -d '' environment <"$pid/environ"; } 2>/dev/null || continue
		[[ " ${environment[*]} " != *" RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR "* ]] || TEST_PROCESSES+=("${pid#/proc/}")
	done
}

list_test_processes() {
	find_test_processes "${@:-rlock rlock-renewer rlock-renewer-p rlock-command}"
	[ ${#TEST_PROCESSES[@]} -eq 0 ] || printf '%s\n' "${TEST_PROCESSES[@]}"
}

renewers() {
	list_test_processes rlock-renewer rlock-renewer-p
}

# find_only_renewer: a helper that a renewer has just forked is called rlock-renewer as well, but only for a moment.
find_only_renewer() {
	wait_until 10 is_one_renewer
}

is_one_renewer() {
	RENEWER=$(renewers)
	[[ $RENEWER =~ ^[0-9]+$ ]]
}

no_rlock_runs() {
	find_test_processes rlock rlock-renewer rlock-renewer-p rlock-command
	[ ${#TEST_PROCESSES[@]} -eq 0 ]
}

count_hold_files() {
	find "$RLOCK_RUNTIME_DIR" -name 'hold-*' 2>/dev/null | wc -l
}

no_hold_files() {
	[ "$(count_hold_files)" = 0 ]
}

# pids_of_test: prints the pids of all processes of this test, one in each line. RLOCK_RUNTIME_DIR in their environment identifies the test.
pids_of_test() {
	grep -lzsxF "RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR" /proc/[0-9]*/environ | tr -dc '0-9\n'
}

# show_failed_test: prints what rlock has written to standard error, which the test may have read no more (record_stderr), and the
# processes of the test with their states.
show_failed_test() {
	local pids
	grep -s '' "$BATS_TEST_TMPDIR/stderr" || :
	pids=$(pids_of_test | paste -sd ,)
	[ -z "$pids" ] || ps -o pid,ppid,stat,wchan:20,etime,args -p "$pids" || :
}

teardown_and_check_processes() {
	[ -n "${BATS_TEST_COMPLETED-}" ] || show_failed_test
	common_teardown
	wait_until 10 no_rlock_runs
}

assert_one_line() {
	assert_equal "${#lines[@]}" 1
	assert_output --regexp "$1"
}

assert_one_message() {
	assert_one_line '^rlock: .'
}

# run_timed_out STATUS COMMAND...: as run, for the message at the end of a wait; asserts the exit status. On a busy
# machine rlock may kill a renewer that got no processor for a second, or get no answer within a short wait: then runs COMMAND again.
run_timed_out() {
	local try
	for try in {1..5}; do
		run "${@:2}"
		[[ $output = *'was killed, or did not run'* ]] || { [ "$1" != 69 ] && [ "$status" = 69 ]; } || break
	done
	assert_equal "$status" "$1"
}

assert_between() {
	assert [ "$1" -le "$2" ]
	assert [ "$2" -le "$3" ]
}

# assert_ttl MIN_MS TTL_MS MAX_MS: as assert_between, but TTL_MS may be 200 ms more. The server counts TTLs by the wall clock, which a
# machine that sets its clock by the network may set back at any time.
assert_ttl() {
	assert_between "$1" "$2" $(($3 + 200))
}

ended_with() {
	local status=0 pid=${2:-$PID}
	wait_until 30 is_gone "$pid" || return
	wait "$pid" 2>/dev/null || status=$?
	[ "$status" = "$1" ] || fail "ended with $status, not $1"
}

# all_ended_with STATUS: waits for the processes without a time limit.
all_ended_with() {
	local pid
	wait "${BACKGROUND[@]}" 2>/dev/null || :
	for pid in "${BACKGROUND[@]}"; do
		ended_with "$1" "$pid" || return
	done
}

# has_waiters NAME [COUNT]: does not count a waiter that has acquired the lock. Also for semaphores.
has_waiters() {
	redis_says "${2:-1}" zcard "rlock_queue:{$1}"
}

has_queue_length() {
	redis_says "$2" llen "$(key_of_lock redisson_lock_queue "$1")"
}

has_hold_count() {
	redis_says "$2" hvals "$1"
}

# hold_by_foreign_client NAME: writes the keys as Redisson does, with a lease of 30 s.
hold_by_foreign_client() {
	redis hset "$1" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1 >/dev/null
	redis pexpire "$1" 30000 >/dev/null
}

release_by_foreign_client() {
	redis del "$1" >/dev/null
	redis publish "redisson_lock__channel:{$1}" 0 >/dev/null
}

# ---- keys ----

keys_are() {
	assert_equal "$(redis keys '*' | sort)" "$(printf '%s\n' "$@" | sort)"
}

digest_keys() {
	redis eval '
		local keys, found = redis.call("KEYS", "*"), {}
		table.sort(keys)
		for i, key in ipairs(keys) do
			found[i] = key .. " " .. redis.sha1hex(redis.call("DUMP", key))
		end
		return found' 0
}
