# What rlock has left behind, and how it ended: for tests that look for more than an exit status. Sourced
# behind helpers.bash.

# Pids of rlock and of its renewers, known by the runtime directory in their environment: it is another
# one in each test, so that tests beside this one are not met.
ours() {
	local environment pid name
	while IFS= read -r environment; do
		pid=${environment#/proc/}
		pid=${pid%%/*}
		# It may have gone.
		{ read -r name <"/proc/$pid/comm"; } 2>/dev/null || continue
		case $name in
		rlock | rlock-renewer) echo "$pid" ;;
		esac
	done < <(grep -lzsxF "RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR" /proc/[0-9]*/environ)
}

nothing_runs() {
	[ -z "$(ours)" ]
}

# Our renewers alone.
renewers() {
	local pid
	for pid in $(ours); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != rlock-renewer ] || echo "$pid"
	done
}

# How many holds without a command are written down in the runtime directory.
state_files() {
	find "$RLOCK_RUNTIME_DIR" -name 'hold-*' 2>/dev/null | wc -l
}

no_state_files() {
	[ "$(state_files)" = 0 ]
}

# As common_teardown, and fails when something of ours runs on.
watchful_teardown() {
	common_teardown
	wait_until 10 nothing_runs
}

# assert_one_line REGEXP: of what `run` ran, one line and no more was heard.
assert_one_line() {
	# shellcheck disable=SC2154
	assert_equal "${#lines[@]}" 1
	assert_output --regexp "$1"
}

# ended_with STATUS [PID]: the background process ends, with that status.
ended_with() {
	local status=0 pid=${2:-$PID}
	wait_until 30 is_gone "$pid" || return
	wait "$pid" 2>/dev/null || status=$?
	[ "$status" = "$1" ] || {
		echo "ended with $status, not $1" >&2
		return 1
	}
}

# has_waiters NAME [COUNT]: so many wait for the plain or write lock (those that got it in the meantime left).
has_waiters() {
	redis_says "${2:-1}" zcard "rlock_queue:{$1}"
}

has_count() {
	[ "$(hold_count "$1")" = "$2" ]
}

# A client that is no rlock has the plain lock.
held_by_stranger() {
	redis hset "$1" 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 1 >/dev/null
	redis pexpire "$1" 30000 >/dev/null
}
