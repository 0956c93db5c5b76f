#!/usr/bin/env bats
# bats file_tags=long
# What a hold has to endure when several things come together: a lock that is lost while its command is
# stopped, a stream that falls silent, a clean-up that outlasts the lease.

load ../lib/usual
load ../lib/proxying

setup_file() { start_warm_server run; }

# ---- what the tests share ----

# has_connected COUNT: so many connections to the proxy there were at least.
has_connected() {
	[ "$(proxy count | sed 's/^connections=\([0-9]*\) .*/\1/')" -ge "$1" ]
}

# says TEXT: among the messages.
says() {
	grep -qsF -e "$1" said
}

# A command that ignores SIGTERM, and has its pid in the file "pid".
ignores_term='trap "" TERM; echo $$ >pid.new; mv pid.new pid; exec until_let_go'

@test "a command that runs on without its lock, and ignores SIGTERM, is killed all the same when it has run too long" {
	listen_to rlock run -t 1s --on-lost ignore --max-run 4s --grace 200ms a -- sh -c "$ignores_term"
	wait_until 5 file_exists pid
	redis del a
	wait_until 10 says 'lock lost'
	within 20 is_gone "$(cat pid)"
	ended_with 76
	says 'the command ran for 4s'
}

@test "a clean-up that takes longer than the lease keeps the lock, though the server is far away" {
	start_prompt_proxy
	# Longer than the pause between two looks at the processes that are to end.
	proxy delay 230
	listen_to rlock run -t 2s --max-run 1s --grace 30s a -- sh -c '
		trap "sleep 2.2; touch cleaned; exit 0" TERM
		until_let_go & wait'
	wait_until 10 says 'the command ran for 1s'
	took_less 20 ended_with 124
	[ -e cleaned ]
	wait_until 5 no_keys
}

@test "a clean-up hears no second SIGTERM" {
	run -124 rlock run --max-run 1s --grace 20s a -- bash -c '
		trap "echo TERM >>terms" TERM
		pause() { read -r -t 0.02 <> <(:) || :; }
		until [ -e terms ]; do pause; done
		end=$((${EPOCHREALTIME/./} + 500000))
		while ((${EPOCHREALTIME/./} < end)); do pause; done
		touch cleaned'
	[ -e cleaned ]
	has_lines terms 1
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

@test "a waiter and its renewer drop memory that they do not need once they have waited for a second" {
	hold_in_background a
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	wait_until 10 has_dropped "$PID" 800
	wait_until 10 has_dropped "$(renewer_of "$PID")" 800
	let_go
	ended_with 0
}

# ---- a stream that falls silent ----

@test "a lock whose stream falls silent is renewed on another one" {
	start_prompt_proxy
	listen_to rlock run -t 3s --connect-timeout 1s a -- until_let_go
	wait_until 5 is_renewed a 3000
	has_connected 1
	run ! has_connected 2
	proxy silence
	wait_until 5 has_connected 2
	wait_until 5 is_renewed a 3000
	let_go
	ended_with 0
	said_nothing
	wait_until 5 no_keys
}

@test "a waiter whose subscription is cut each time tries less and less often, and ends with 75" {
	hold_in_background a
	start_prompt_proxy
	proxy log "$PWD/requests"
	proxy cut-before subscribe 1000
	run -75 rlock run -w 2s a -- touch ran
	[ ! -e ran ]
	tries=$(grep -c 'redisson_lock_token:{a}' requests)
	((tries > 2 && tries <= 20)) || fail "$tries tries"
}
