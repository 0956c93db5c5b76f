#!/usr/bin/env bats
# The renewer waits for the lock, and rlock for its renewer: one of them is killed or stopped meanwhile. The wait goes on where
# it was, or it ends and leaves nothing.

load ../lib/usual
load ../lib/holding
load ../lib/proxying

# wait_behind VERB [OPTION...]: another owner has the lock "a", until `leaves`, and an rlock waits for it; its messages are in
# "said". Sets PID and RENEWER.
wait_behind() {
	rlock "${1/#run/lock}" --owner other -l 60s a
	listen_to rlock "$1" "${@:2}" a -- sh -c "$STAYING"
	wait_until 5 waits_in_queue a
	wait_until 5 has_renewer "$PID"
	RENEWER=$(renewer_of "$PID")
}

leaves() {
	rlock unlock --owner other a
}

# waits_in_queue NAME [COUNT]: so many waiters are there, for a lock of whatever kind.
waits_in_queue() {
	has_waiters "$1" "${2:-1}" || has_in_queue "$1" "${2:-1}"
}

has_other_renewer() {
	find_renewers "$1"
	[ ${#RENEWERS[@]} -eq 1 ] && [ "${RENEWERS[0]}" != "$2" ]
}

none_waits() {
	has_waiters a 0 && has_in_queue a 0
}

# ---- the renewer killed ----

@test "a waiter whose renewer is killed has another, with its hold id and position, which acquires, renews and releases the lock" {
	local verb before first
	for verb in run fair; do
		rm -f command-pid let-go
		wait_behind "$verb" -t 2s
		first=$PID
		in_background rlock "$verb" a -- true
		wait_until 5 waits_in_queue a 2
		before=$(waiting_ids)
		kill -s KILL "$RENEWER"
		wait_until 5 has_other_renewer "$first" "$RENEWER"
		stays 0.5 same_wait "$before"
		leaves
		PID=$first know_processes
		stays 2.5 is_held a
		let_go
		ended_with 0 "$first"
		ended_with 0
		said_nothing
		no_keys
	done
}

# waiting_ids: the hold ids in the queue of the plain lock "a", or the owners in that of the fair one, in their order.
waiting_ids() {
	redis zrange 'rlock_queue:{a}' 0 -1
	redis lrange 'redisson_lock_queue:{a}' 0 -1
}

same_wait() {
	[ "$(waiting_ids)" = "$1" ]
}

@test "a waiter whose renewer is killed waits no longer than its wait time in all" {
	local start
	start=$(now_ms)
	wait_behind run -w 6s
	wait_until 10 has_waited "$start" 4500
	kill -s KILL "$RENEWER"
	wait_until 20 is_gone "$PID"
	assert_between 5900 $(($(now_ms) - start)) 10500
	ended_with 75
	none_waits
	said_once '^rlock: a: timed out after 6s'
}

# has_waited START_MS MS
has_waited() {
	(($(now_ms) - $1 >= $2))
}

@test "a renewer that is killed when the lock is granted and it has not heard so: the command runs once, with one hold" {
	local direct=$RLOCK_URL
	rlock lock --owner other -l 60s a
	start_proxy
	listen_to rlock run -t 3s a -- sh -c 'ask_redis "$SERVER_SOCKET" hvals a >>ran; '"$STAYING"
	RLOCK_URL=$direct
	wait_until 5 has_waiters a
	wait_until 5 has_renewer "$PID"
	# Only what acquires the lock has that word.
	proxy hold-reply "$ACQUIRE" 1000
	leaves
	wait_until 10 is_granted_to "$PID"
	kill -s KILL "$(renewer_of "$PID")"
	proxy pass
	know_processes
	let_go
	ended_with 0
	assert_equal "$(cat ran)" 1
	said_nothing
	no_keys
}

@test "a command whose renewer is killed before it has come to run is run once, and rlock waits for it" {
	needs_refuse
	local command
	# The fourth getpid of that name is of the command's process, whose pid stands nowhere yet.
	listen_to refuse stopped rlock-renewer getpid STOP 4 rlock run a -- sh -c 'echo $$ >>ran; exit 7'
	wait_until 10 test -s stopped
	command=$(cut -d ' ' -f 4 stopped)
	BACKGROUND+=("$command")
	wait_until 5 is_stopped "$command"
	parent_of "$command"
	kill -s KILL "$PARENT"
	wait_until 5 has_parent "$command" "$PID"
	kill -s CONT "$command"
	ended_with 7
	assert_equal "$(cat ran)" "$command"
	said_nothing
	no_keys
}

@test "a renewer that is killed while it releases, since no command could be started, is not followed by another" {
	needs_refuse
	start_proxy
	proxy hold-reply "$RELEASE"
	listen_to refuse refused rlock-renewer clone,clone3,fork,vfork EAGAIN 1 rlock run a -- touch ran
	wait_until 10 says 'cannot start touch'
	kill -s KILL "$(renewer_of "$PID")"
	ended_with 70
	[ ! -e ran ] || fail 'the command ran'
	proxy pass
	wait_until 5 no_keys
	nothing_runs
}

says() {
	grep -qsF -e "$1" said
}

# The reply is on its way, and only the server knows the owner.
is_granted_to() {
	redis hkeys a | grep -q ":$1$"
}

# ---- rlock killed ----

@test "a waiter that is killed is out of the queue within seconds, with its renewer" {
	local verb
	for verb in run fair; do
		wait_behind "$verb"
		kill -s KILL "$PID"
		within 5 none_waits
		wait_until 3 nothing_runs
		leaves
		no_keys
	done
}

@test "a waiter that is killed with its renewer is out of the queue when another one comes for its turn" {
	wait_behind run
	in_background rlock run a -- touch second
	wait_until 5 has_waiters a 2
	kill -s KILL "$RENEWER" "${BACKGROUND[-2]}"
	leaves
	wait_until 15 file_exists second
	ended_with 0
	no_keys
}

# comes_with_lock SIGNAL: a waiter's renewer learns at one time that it has the lock, and that rlock has been sent the signal.
comes_with_lock() {
	local renewer
	rlock lock --owner other -l 60s a
	listen_to env RLOCK_URL="unix://$BATS_TEST_TMPDIR/proxy.sock" rlock run a -- sh -c "$STAYING"
	wait_until 5 has_waiters a
	wait_until 5 has_renewer "$PID"
	renewer=$(renewer_of "$PID")
	proxy hold-reply "$ACQUIRE" 1000
	leaves
	wait_until 10 is_granted_to "$PID"
	kill -s STOP "$renewer"
	proxy release
	kill -s "$1" "$PID"
	wait_until 5 has_taken_signals "$PID"
	kill -s CONT "$renewer"
	wait_until 5 is_free a
	[ ! -e command-pid ]
	wait_until 5 nothing_runs
	no_keys
	proxy pass
}

# has_taken_signals PID: none is pending, or it is gone.
has_taken_signals() {
	is_gone "$1" || grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$1/status"
}

@test "no command runs for an rlock that is told to end, or killed, when its renewer learns that it has the lock" {
	local direct=$RLOCK_URL
	start_proxy
	RLOCK_URL=$direct
	comes_with_lock TERM
	ended_with 143
	comes_with_lock KILL
}

@test "no command is started for an rlock that is stopped: not before it goes on, from when --max-run counts" {
	wait_behind run -t 2s --max-run 2s
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	leaves
	stays 2.5 no_command_runs
	is_held a
	let_go
	kill -s CONT "$PID"
	ended_with 0
	test -s command-pid
	no_keys
}

@test "no command is started for an rlock that is killed while it is stopped, and its lock is released" {
	wait_behind run
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	leaves
	# By its renewer.
	wait_until 5 is_held a
	stays 0.5 is_held a
	kill -s KILL "$PID"
	wait_until 5 no_keys
	no_command_runs
	wait_until 5 nothing_runs
}

@test "no command is started for an rlock that is being killed after it was stopped, and gets no processor" {
	local processor
	chrt --rr 2 true 2>/dev/null || skip 'no process may have a real-time priority here'
	[ "$(nproc)" -gt 1 ] || skip 'there is one processor only'
	processor=$(taskset --cpu-list --pid $$ | sed 's/.*: //; s/[-,].*//')
	wait_behind run
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	taskset --cpu-list --pid "$processor" "$PID" >&2
	leaves
	wait_until 5 is_held a
	# The renewer looks at rlock each tenth of a second.
	in_background chrt --rr 2 taskset --cpu-list "$processor" timeout 0.5 sh -c 'kill -s KILL "$0"; while :; do :; done' "$PID"
	wait_until 10 no_keys
	no_command_runs
}

no_command_runs() {
	[ ! -e command-pid ]
}

# ---- ends ----

@test "a stopped renewer does not hold up the end of a waiter by a signal" {
	wait_behind run
	kill -s STOP "$RENEWER"
	kill -s TERM "$PID"
	took_less 10 ended_with 143
	wait_until 5 nothing_runs
	wait_until 5 none_waits
	leaves
	no_keys
}

# rlock hears of both at once.
@test "a signal ends a waiter whose renewer is dead, and it leaves the queue" {
	wait_behind fair
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	kill -s KILL "$RENEWER"
	kill -s TERM "$PID"
	kill -s CONT "$PID"
	ended_with 143
	none_waits
	nothing_runs
	leaves
	no_keys
}

# ---- what waiters cost ----
