# Plain locks while something fails: one that is held, one that is waited for, and one whose requests are to get lost.
# Sourced after helpers.bash, leftovers.bash, watching.bash, and, for the proxy, proxying.bash.

# `run` sets output and stderr.
# shellcheck disable=SC2154

# ---- holders and waiters ----

# hold_and_listen NAME [OPTION...]: as hold_in_background, messages in the file "said". Returns when the command runs: the
# server has the lock before rlock has its reply.
hold_and_listen() {
	local name=$1
	shift
	listen_to rlock run "$@" "$name" -- until_let_go
	wait_until 5 is_above "$PID" until_let_go
}

# wait_for_lock NAME [OPTION...]: a waiter, messages in the file "said", which makes the file "ran"
# once it has the lock. Sets PID. Returns when it waits.
wait_for_lock() {
	local name=$1
	shift
	listen_to rlock run "$@" "$name" -- touch ran
	wait_until 5 has_waiters "$name"
}

# ---- requests and replies ----

# A command that counts how often it ran, prints the hold count and exits with 7.
runs_once='echo >>ran; ask_redis "$SERVER_SOCKET" hvals a; exit 7'

# run_counted [OPTION...]: that command under the lock "a"; it has to run once, with one hold, and
# nothing may be left.
run_counted() {
	run -7 --separate-stderr rlock run "$@" a -- sh -c "$runs_once"
	[ "$output" = 1 ] || fail "hold counts: $output"
	[ "$stderr" = '' ] || fail "said: $stderr"
	has_lines ran 1
	no_keys
}

# renewal_survives COMMAND...: with that fault for renewals the lock stays held by one hold.
renewal_survives() {
	start_prompt_proxy
	hold_and_listen a -t 2s
	proxy "$@"
	wait_until 5 faults_happened
	wait_until 5 is_renewed a 2000
	[ "$(hold_count a)" = 1 ]
	let_go
	ended_with 0
	said_nothing
	no_keys
}
