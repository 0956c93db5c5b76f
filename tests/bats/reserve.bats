#!/usr/bin/env bats
# The renewer that is forked while the lock is waited for. What renewers do is in run_times.bats and processes.bats.

load ../lib/helpers
load ../lib/leftovers
load ../lib/proxying
load ../lib/watching

setup_file() { start_server_at_port; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# wait_behind VERB [OPTION...]: a holder, and a waiter behind it that has a renewer: PID and RENEWER.
wait_behind() {
	in_background rlock run a -- until_let_go
	HOLDER=$PID
	wait_until 5 is_held a
	in_background rlock "$1" "${@:2}" a -- sh -c 'touch in; comes_true test -e out'
	wait_until 5 has_renewer "$PID"
	RENEWER=$(renewer_of "$PID")
}

@test "a waiter has its renewer before it has the lock" {
	local verb
	for verb in run fair; do
		rm -f in out let-go
		wait_behind "$verb"
		let_go
		wait_until 5 test -e in
		assert_equal "$(renewer_of "$PID")" "$RENEWER"
		touch out
		ended_with 0
	done
	no_keys
}

@test "a waiter has its renewer before the try that joins the queue" {
	local holder
	in_background rlock run a -- until_let_go
	holder=$PID
	wait_until 5 is_held a
	start_proxy
	proxy spare EVALSHA
	proxy hold-reply EVALSHA
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	wait_until 5 has_renewer "$PID" # it gives itself its name, and forks nothing while it waits for a reply
	proxy release
	let_go
	ended_with 0
	ended_with 0 "$holder"
	no_keys
}

# has_dropped PID KB: so much of the most that it had in memory.
has_dropped() {
	local key value most=0 now=0
	while read -r key value _; do
		case $key in
		VmHWM:) most=$value ;;
		VmRSS:) now=$value ;;
		esac
	done <"/proc/$1/status"
	((most - now > $2))
}

@test "a waiter drops memory that it does not need once it has waited for a second" {
	wait_behind run
	wait_until 10 has_dropped "$PID" 800
	let_go
	wait_until 5 test -e in
	touch out
	ended_with 0
}

@test "a renewer that was forked during the wait renews the lock" {
	wait_behind run -t 3s
	let_go
	wait_until 5 test -e in
	let_pass 4
	is_held a
	assert_equal "$(renewer_of "$PID")" "$RENEWER"
	touch out
	ended_with 0
	no_keys
}

@test "a lock that was waited for is renewed and released when its keeper is killed" {
	wait_behind run -t 3s
	let_go
	wait_until 5 test -e in
	kill -KILL "$PID"
	let_pass 4
	is_held a
	touch out
	wait_until 5 is_free a
	wait_until 5 is_gone "$RENEWER"
	no_keys
}

@test "a waiter whose renewer was killed has another when it has the lock" {
	wait_behind run -t 3s
	kill -KILL "$RENEWER"
	let_go
	wait_until 5 test -e in
	wait_until 5 has_renewer "$PID" # it gives itself its name, and forks nothing while it waits for a reply
	let_pass 4
	is_held a
	touch out
	ended_with 0
	no_keys
}

@test "a waiter whose wait is over leaves no renewer" {
	wait_behind run -w 2s
	ended_with 75
	is_gone "$RENEWER"
	let_go
	ended_with 0 "$HOLDER"
	no_keys
}

@test "a waiter that is told to end leaves no renewer" {
	wait_behind run
	kill -TERM "$PID"
	ended_with 143
	is_gone "$RENEWER"
	let_go
	ended_with 0 "$HOLDER"
	no_keys
}

@test "a waiter that is killed leaves no renewer" {
	wait_behind run
	kill -KILL "$PID"
	wait_until 5 is_gone "$RENEWER"
	let_go
	ended_with 0 "$HOLDER"
	no_keys
}


@test "a waiter that is killed leaves the queue" {
	wait_behind run
	wait_until 5 has_waiters a
	kill -KILL "$PID"
	wait_until 3 has_waiters a 0
	let_go
	ended_with 0 "$HOLDER"
	no_keys
}

# The reply is on its way, and only the server knows the owner.
is_granted_to() {
	redis hkeys a | grep -q ":$1$"
}

@test "a lock that was granted to a waiter that is killed before it learns so is released" {
	local direct=$RLOCK_URL waiter
	in_background rlock run a -- until_let_go
	HOLDER=$PID
	wait_until 5 is_held a
	start_proxy
	in_background rlock run a -- touch in
	waiter=$PID
	RLOCK_URL=$direct
	wait_until 5 has_renewer "$waiter"
	wait_until 5 has_waiters a
	# Only what acquires the lock has that word.
	proxy hold-reply 'redisson_lock_token:{a}' 1000
	let_go
	wait_until 20 is_granted_to "$waiter"
	kill -KILL "$waiter"
	wait_until 5 is_free a
	[ ! -e in ]
	ended_with 0 "$HOLDER"
	no_keys
}
