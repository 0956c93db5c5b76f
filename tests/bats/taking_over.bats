#!/usr/bin/env bats
# bats file_tags=long
# The renewer, which is the command's parent, is killed or stopped: rlock takes over, and what the user was promised holds as
# before. And rlock killed: the renewer goes on.

load ../lib/usual
load ../lib/holding

# ---- parents ----

@test "the command's parent is the renewer, and ps shows of which lock, with a command and without" {
	need_own_command_line
	hold_and_know nightly
	has_parent "$COMMAND" "$RENEWER"
	has_parent "$RENEWER" "$PID"
	run -0 ps -o args= -p "$RENEWER"
	assert_output --regexp '^rlock-renewer: nightly *$'
	run -0 ps -o args= -p "$PID"
	assert_output --regexp '^rlock run nightly -- '
	let_go
	ended_with 0
	in_background sleep 60
	rlock lock --pid "$PID" nightly
	run -0 ps -o args= -p "$(renewers)"
	assert_output --regexp '^rlock-renewer: nightly *$'
	kill "$PID"
	wait_until 5 no_keys
}

# ---- the renewer killed ----

# is_taken_over PID COMMAND: nothing but rlock is between it and the command.
is_taken_over() {
	has_parent "$2" "$1"
}

@test "with the renewer killed the lock stays, is renewed, and is released when the command has ended" {
	hold_and_know a -t 2s
	kill -s KILL "$RENEWER"
	wait_until 5 is_taken_over "$PID" "$COMMAND"
	stays 3 holds_on a "$PID" "$COMMAND"
	let_go
	ended_with 0
	said_nothing
	no_keys
	nothing_runs
}

@test "with the renewer killed a signal sent to rlock is passed on, and one that the command has had is not again" {
	hold_for 'echo $$ >command-pid; exec log_signals' a
	wait_until 5 file_says signals ready
	kill -s USR1 "$PID"
	wait_until 5 file_says signals USR1
	kill -s KILL "$RENEWER"
	for signal in USR2 HUP TERM; do
		kill -s "$signal" "$PID"
		wait_until 5 file_says signals "$signal"
	done
	let_go
	ended_with 0
	assert_equal "$(grep -cx USR1 signals)" 1
}

@test "with the renewer killed while the server does not answer the command is terminated before the lease ends" {
	local end
	hold_and_know a -t 3s
	wait_until 5 is_renewed a 3000
	knowing_end kill -s STOP "$SERVER_PID"
	kill -s KILL "$RENEWER"
	wait_closely 20 is_gone "$COMMAND"
	(($(now_ms) < end)) || fail "the command ended $(($(now_ms) - end)) ms after the lease"
	kill -s CONT "$SERVER_PID"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
	wait_until 5 no_keys
}

@test "a lost lock that the renewer has told of before it is killed is not told of again" {
	hold_and_know a -t 2s --on-lost ignore
	redis del a
	wait_until 10 grep -q 'lock lost' said
	kill -s KILL "$RENEWER"
	wait_until 5 is_taken_over "$PID" "$COMMAND"
	let_go
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
}

# Of the renewer all calls that may be its last one, one after the other. (Of a process that is to become the command some may
# be meant, too: a command that is killed before it has begun was killed.)
CALLS=poll,ppoll,read,write,sendto,sendmsg,recvfrom,recvmsg,connect,socket,clone,clone3,fork,vfork,kill,waitid,setpgid
CALLS+=,timerfd_settime,timerfd_create,pidfd_open,pidfd_send_signal,prctl,signalfd4,rt_sigprocmask,exit_group

# killed_at NUMBER: the renewer is killed before that call of its own, while a command runs that ends with 7. Fails where there
# was none left.
killed_at() {
	local name=lock$1 status=0 killed parent
	mkdir "killed$1"
	(
		cd "killed$1" || exit
		timeout -s KILL 30 refuse at rlock-renewer "$CALLS" KILL "$1" \
			rlock run -t 2s "$name" -- sh -c 'echo $$ >>ran; exit 7' >said 2>&1
	) || status=$?
	[ -s "killed$1/at" ] || return
	read -r _ _ _ killed parent <"killed$1/at"
	if [ "$status" = 137 ] && [ ! -e "killed$1/ran" ] && [ ! -s "killed$1/said" ]; then
		echo "$killed, child of $parent" >>commands_killed
	elif [ "$status" != 7 ] || ! has_lines "killed$1/ran" 1 || [ -s "killed$1/said" ]; then
		echo "$(cat "killed$1/at"): ended with $status, ran $(wc -l <"killed$1/ran"): $(cat "killed$1/said")" >>wrong
	fi
	is_free "$name" || echo "$(cat "killed$1/at"): not released" >>wrong
}

@test "a renewer killed at any of its calls loses neither the command, nor its status, nor the release" {
	needs_refuse
	local number
	: >wrong
	: >commands_killed
	for ((number = 1; number < 1000; number++)); do
		killed_at "$number" || break
	done
	((number > 10)) || fail "only $number calls were made"
	[ ! -s wrong ] || fail "$(cat wrong)"
	# Between its start and its exec the command is few calls long.
	(($(wc -l <commands_killed) <= 10)) || fail "$(wc -l <commands_killed) times the command did not run"
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

# The signal is sent by the renewer's first kill(), and comes from the command: rlock, which takes over, does not know of it.
@test "a renewer that is killed as soon as it has sent SIGTERM: all of the command's processes are terminated, too" {
	needs_refuse
	KINDS=${ESCAPERS[*]} listen_to refuse at rlock-renewer kill KILL 2 \
		rlock run --grace 200ms a -- sh -c 'escape escaped $KINDS; kill $PPID; exec until_let_go'
	ended_with 143
	assert [ -s at ]
	none_escaped
	no_keys
}

# ---- signals to the renewer ----

@test "SIGTERM that the command sends to its parent reaches the command, and rlock ends as that does" {
	run -5 timeout 20 rlock run a -- sh -c 'trap "exit 5" TERM; kill $PPID; while :; do sleep 0.02; done'
	no_keys
	run -143 timeout 20 rlock run a -- sh -c 'kill $PPID; exec sleep 60'
	no_keys
}

@test "SIGTERM that a process of the command sends to its grandparent terminates the command whole" {
	run -143 timeout 20 rlock run --grace 200ms a -- sh -c 'escape escaped session; sh -c "kill $PPID"; exec sleep 60'
	none_escaped
	no_keys
}

@test "signals that others send to the renewer change nothing" {
	hold_for 'echo $$ >command-pid; exec log_signals' a -t 2s
	wait_until 5 file_says signals ready
	for signal in TERM INT HUP QUIT USR1 USR2 ALRM PIPE WINCH TSTP TTIN TTOU; do
		kill -s "$signal" "$RENEWER"
	done
	stays 1 holds_on a "$RENEWER" "$COMMAND"
	assert_equal "$(cat signals)" ready
	let_go
	ended_with 0
	no_keys
}

# ---- the renewer stopped ----

@test "a stopped renewer does not hold up the end" {
	hold_for 'echo $$ >command-pid; until_let_go; exit 7' a -t 90s
	kill -s STOP "$RENEWER"
	let_go
	took_less 15 ended_with 7
	said_nothing
	no_keys
	nothing_runs
}

@test "a stopped renewer does not hold up SIGTERM" {
	hold_and_know a -t 90s
	kill -s STOP "$RENEWER"
	kill -s TERM "$PID"
	took_less 15 ended_with 143
	is_gone "$COMMAND"
	no_keys
	nothing_runs
}

# ---- --kill-child ----

@test "--kill-child: the command's processes die when rlock is killed, and the lock is free after them" {
	KINDS=${ESCAPERS[*]} hold_for 'escape escaped $KINDS; echo $$ >command-pid; exec until_let_go' a --kill-child
	rival_waits a
	kill -s KILL "$PID"
	wait_until 5 is_gone "$COMMAND"
	rival_entered
	wait_until 5 nothing_runs
}

@test "--kill-child: the command's processes die when the renewer is killed, and the lock is free after them" {
	KINDS=${ESCAPERS[*]} hold_for 'escape escaped $KINDS; echo $$ >command-pid; exec until_let_go' a --kill-child
	rival_waits a
	kill -s KILL "$RENEWER"
	wait_until 5 is_gone "$COMMAND"
	rival_entered
	ended_with 137
	wait_until 5 nothing_runs
}

@test "--kill-child: the command dies when rlock and its renewer are killed at once" {
	hold_and_know a --kill-child
	kill -s KILL "$PID" "$RENEWER"
	wait_until 5 is_gone "$COMMAND"
	wait_until 5 nothing_runs
}

# ---- rlock killed ----

@test "with rlock killed a command that is stopped gets SIGHUP and SIGCONT, as in an orphaned group" {
	hold_for 'echo $$ >command-pid; exec log_signals' a -t 2s
	wait_until 5 file_says signals ready
	kill -s STOP "$COMMAND"
	wait_until 5 is_stopped "$COMMAND"
	kill -s KILL "$PID"
	wait_until 5 file_says signals HUP
	wait_until 5 file_says signals CONT
	is_held a
	let_go
	wait_until 5 no_keys
}
