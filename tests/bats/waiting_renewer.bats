#!/usr/bin/env bats
# The renewer waits for the lock, and rlock for its renewer: one of them is killed or stopped meanwhile. The wait goes on where
# it was, or it ends and leaves nothing.

# In single quotes stand whole scripts; each test is a subshell, and knows that; helpers set what is in capitals.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/queue
load ../lib/holding
load ../lib/proxying

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

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

# waits_in_queue NAME: one waiter is there, for a lock of whatever kind.
waits_in_queue() {
	has_waiters "$1" 1 || has_in_queue "$1" 1
}

has_other_renewer() {
	find_renewers "$1"
	[ ${#RENEWERS[@]} -eq 1 ] && [ "${RENEWERS[0]}" != "$2" ]
}

none_waits() {
	has_waiters a 0 && has_in_queue a 0
}

# ---- the renewer killed ----

@test "a waiter whose renewer is killed has another, which acquires the lock, renews and releases it" {
	local verb
	for verb in run fair wlock; do
		rm -f command-pid let-go
		wait_behind "$verb" -t 2s
		kill -s KILL "$RENEWER"
		wait_until 5 has_other_renewer "$PID" "$RENEWER"
		leaves
		know_processes
		stays 2.5 is_held a
		let_go
		ended_with 0
		said_nothing
		no_keys
	done
}

# owners_waiting: those in the queue of the fair lock "a".
owners_waiting() {
	queue_owners a
}

@test "a waiter in a fair queue whose renewer is killed keeps its owner and its position" {
	local before killed
	rlock fair --owner other -l 60s a
	for party in r1 r2 r3; do
		start_waiter "$party" a
		wait_until 10 is_last a "$party"
	done
	before=$(owners_waiting)
	wait_until 5 has_renewer "${PIDS[r2]}"
	killed=$(renewer_of "${PIDS[r2]}")
	kill -s KILL "$killed"
	wait_until 5 has_other_renewer "${PIDS[r2]}" "$killed"
	stays 2 queue_is a r1 r2 r3
	assert_equal "$(owners_waiting)" "$before"
	leaves
	take_turns r1 r2 r3
	no_keys
}

# waits_as_id: the hold ids in the queue of the plain lock "a".
ids_waiting() {
	redis zrange 'rlock_queue:{a}' 0 -1
}

@test "a waiter for a plain lock whose renewer is killed keeps its hold id and its position" {
	local before first second
	wait_behind run
	first=$PID
	in_background rlock run a -- true
	second=$PID
	wait_until 5 has_waiters a 2
	PID=$first
	before=$(ids_waiting)
	kill -s KILL "$RENEWER"
	wait_until 5 has_other_renewer "$PID" "$RENEWER"
	stays 2 ids_are "$before"
	leaves
	know_processes
	let_go
	ended_with 0 "$first"
	ended_with 0 "$second"
	no_keys
}

ids_are() {
	[ "$(ids_waiting)" = "$1" ]
}

@test "a waiter whose renewer is killed waits no longer than its wait time in all" {
	local start
	start=$(now_ms)
	wait_behind run -w 3s
	wait_until 5 has_waited "$start" 1500
	kill -s KILL "$RENEWER"
	wait_until 10 is_gone "$PID"
	assert_between 2900 $(($(now_ms) - start)) 4500
	ended_with 75
	none_waits
	said_once '^rlock: a: timed out after 3s'
}

# has_waited START_MS MS
has_waited() {
	(($(now_ms) - $1 >= $2))
}

@test "a waiter whose renewers are killed again and again gets its turn" {
	local i
	wait_behind run
	for ((i = 0; i < 5; i++)); do
		kill -s KILL "$RENEWER"
		wait_until 5 has_other_renewer "$PID" "$RENEWER"
		RENEWER=$(renewer_of "$PID")
	done
	leaves
	know_processes
	let_go
	ended_with 0
	no_keys
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
	# The third getpid of that name is of the command's process, whose pid stands nowhere yet.
	listen_to refuse stopped rlock-renewer getpid STOP 3 rlock run a -- sh -c 'echo $$ >>ran; exit 7'
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
	for verb in run fair wlock; do
		wait_behind "$verb"
		kill -s KILL "$PID"
		within 3 none_waits
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
	within 5 file_exists second
	ended_with 0
	no_keys
}

@test "a lock that is granted to a waiter that is killed before it has heard so is released at once, and no command runs" {
	local direct=$RLOCK_URL
	rlock lock --owner other -l 60s a
	start_proxy
	listen_to rlock run a -- sh -c "$STAYING"
	RLOCK_URL=$direct
	wait_until 5 has_waiters a
	proxy hold-reply "$ACQUIRE" 1000
	leaves
	wait_until 10 is_granted_to "$PID"
	kill -s KILL "$PID"
	wait_until 5 is_free a
	[ ! -e command-pid ]
	wait_until 5 nothing_runs
	no_keys
}

# comes_with_lock SIGNAL: a waiter's renewer learns at one time that it has the lock, and that rlock has been sent the signal.
comes_with_lock() {
	local direct=$RLOCK_URL renewer
	rlock lock --owner other -l 60s a
	start_proxy
	listen_to rlock run a -- sh -c "$STAYING"
	RLOCK_URL=$direct
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
}

# has_taken_signals PID: none is pending, or it is gone.
has_taken_signals() {
	is_gone "$1" || grep -q '^ShdPnd:[[:space:]]*0*$' "/proc/$1/status"
}

@test "a signal that comes together with the lock ends rlock, and no command runs" {
	comes_with_lock TERM
	ended_with 143
}

@test "no command runs for an rlock that is killed when its renewer learns that it has the lock" {
	comes_with_lock KILL
}

@test "no command is started for an rlock that is stopped: not before it goes on" {
	wait_behind run -t 2s
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	leaves
	stays 2.5 no_command_runs
	kill -s CONT "$PID"
	know_processes
	is_held a
	let_go
	ended_with 0
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

# Else a later waiter overtakes it.
@test "a renewer that has waited for a while is followed by another at once when it is killed" {
	local begun_ms took_ms quickest_ms=5000
	wait_behind run
	for _ in 1 2 3 4 5; do
		let_pass 0.25
		begun_ms=$(now_ms)
		kill -s KILL "$RENEWER"
		wait_closely 5 has_other_renewer "$PID" "$RENEWER"
		took_ms=$(($(now_ms) - begun_ms))
		quickest_ms=$((took_ms < quickest_ms ? took_ms : quickest_ms))
		RENEWER=$(renewer_of "$PID")
	done
	assert [ "$quickest_ms" -lt 160 ]
	leaves
	know_processes
	let_go
	ended_with 0
}

@test "--max-run does not count how long rlock was stopped before its command started" {
	wait_behind run -t 2s --max-run 1s
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	leaves
	stays 1.5 no_command_runs
	kill -s CONT "$PID"
	know_processes
	ended_with 124
	no_keys
}

@test "a fixed lease that ends before rlock goes on and starts its command ends it with 124" {
	wait_behind run -l 2s
	kill -s STOP "$PID"
	wait_until 5 is_stopped "$PID"
	leaves
	# Between the release and the grant there may be none either.
	wait_until 5 is_held a
	wait_until 5 no_keys
	kill -s CONT "$PID"
	ended_with 124
	no_command_runs
}

no_command_runs() {
	[ ! -e command-pid ]
}

# ---- ends ----

@test "a stopped renewer does not hold up the end of a waiter by a signal" {
	for signal in TERM INT HUP QUIT; do
		wait_behind run
		kill -s STOP "$RENEWER"
		kill -s "$signal" "$PID"
		took_less 4 ended_with $((128 + $(kill -l "$signal")))
		wait_until 3 nothing_runs
		wait_until 3 none_waits
		leaves
		no_keys
	done
}

# rlock hears of both at once.
@test "a signal ends a waiter whose renewer is dead, and it leaves the queue" {
	for signal in TERM INT HUP QUIT; do
		wait_behind fair
		kill -s STOP "$PID"
		wait_until 5 is_stopped "$PID"
		kill -s KILL "$RENEWER"
		kill -s "$signal" "$PID"
		kill -s CONT "$PID"
		ended_with $((128 + $(kill -l "$signal")))
		none_waits
		nothing_runs
		leaves
		no_keys
	done
}

@test "a signal ends a waiter within a second, and it leaves the queue" {
	for signal in TERM INT HUP QUIT; do
		wait_behind fair
		kill -s "$signal" "$PID"
		took_less 2.5 ended_with $((128 + $(kill -l "$signal")))
		none_waits
		nothing_runs
		leaves
		no_keys
	done
}

@test "signals that others send to the renewer of a waiter do not end the wait" {
	wait_behind run
	for signal in TERM INT HUP QUIT USR1 USR2 ALRM PIPE WINCH; do
		kill -s "$signal" "$RENEWER"
	done
	stays 1 waits_in_queue a
	is_running "$PID"
	leaves
	know_processes
	let_go
	ended_with 0
	no_keys
}

@test "rlock lock can be ended while its renewer is stopped, at whatever moment" {
	needs_refuse
	local number pid status
	for number in 1 2 3 5 8; do
		in_background sleep 60
		pid=$PID
		in_background refuse "stopped$number" rlock-renewer poll,ppoll,read,write,connect,socket,openat,prctl,signalfd4,setpgid,setsid,clock_nanosleep \
			STOP "$number" rlock lock --pid "$pid" a
		wait_until 10 stopped_or_over "stopped$number" "$PID"
		kill -s TERM "$PID" 2>/dev/null || :
		took_less 5 wait_until 30 is_gone "$PID"
		status=0
		wait "$PID" || status=$?
		# It had the lock before, or it has none.
		[[ $status = @(0|143) ]] || fail "ended with $status, stopped at $(cat "stopped$number")"
		kill "$pid"
		wait_until 5 is_gone "$pid"
		# What was stopped after the lock was handed over.
		! [ -s "stopped$number" ] || kill -s CONT "$(cut -d ' ' -f 4 "stopped$number")" 2>/dev/null || :
		wait_until 10 nothing_runs
		wait_until 5 no_keys
	done
}

# stopped_or_over FILE PID: one has been stopped, by that record, or all is over.
stopped_or_over() {
	[ -s "$1" ] || is_gone "$2"
}

@test "an rlock that is ended before its renewer has done anything leaves nothing" {
	needs_refuse
	in_background refuse stopped rlock-renewer poll,ppoll,read,write,connect,socket,openat,prctl,signalfd4 STOP 1 rlock run a -- touch ran
	wait_until 10 stopped_or_over stopped "$PID"
	kill -s TERM "$PID" 2>/dev/null || :
	wait_until 5 is_gone "$PID"
	wait_until 5 nothing_runs
	wait_until 5 no_keys
}

# ---- what waiters cost ----

@test "a lock without a command, whose wait is over, leaves no renewer" {
	rlock lock --owner other -l 60s a
	in_background sleep 60
	run -75 rlock lock -w 1s --pid "$PID" a
	nothing_runs
	none_waits
}
