#!/usr/bin/env bats
# bats file_tags=long
# The renewer, which is the command's parent, is killed or stopped: rlock takes over, and what the user was promised holds as
# before. And rlock killed: the renewer goes on.

# In single quotes stand whole scripts; each test is a subshell, and knows that; helpers set what is in capitals.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- parents ----

@test "the command's parent is the renewer, and the renewer's is rlock" {
	hold_and_know a
	has_parent "$COMMAND" "$RENEWER"
	has_parent "$RENEWER" "$PID"
	let_go
	ended_with 0
}

@test "ps shows which process is the renewer, and of which lock" {
	need_own_command_line
	hold_and_know nightly
	run -0 ps -o args= -p "$RENEWER"
	assert_output --regexp '^rlock-renewer: nightly *$'
	run -0 ps -o args= -p "$PID"
	assert_output --regexp '^rlock run nightly -- '
	let_go
	ended_with 0
}

@test "ps shows the renewer of a lock without a command, and of which lock" {
	need_own_command_line
	local renewer
	in_background sleep 60
	rlock lock --pid "$PID" nightly
	renewer=$(renewers)
	run -0 ps -o args= -p "$renewer"
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

@test "with the renewer killed no other gets the lock before the command has ended" {
	hold_and_know a -t 1s
	kill -s KILL "$RENEWER"
	run -75 rlock run -w 2s a -- true
	let_go
	ended_with 0
	no_keys
}

@test "with the renewer killed rlock ends as its command does" {
	local status
	for status in 0 7 255; do
		rm -f command-pid let-go
		hold_for "echo \$\$ >command-pid; until_let_go; exit $status" a
		kill -s KILL "$RENEWER"
		wait_until 5 is_taken_over "$PID" "$COMMAND"
		let_go
		ended_with "$status"
		no_keys
	done
	rm -f command-pid let-go
	hold_and_know a
	kill -s KILL "$RENEWER"
	wait_until 5 is_taken_over "$PID" "$COMMAND"
	kill -s USR1 "$COMMAND"
	ended_with $((128 + $(kill -l USR1)))
	no_keys
}

@test "with the renewer killed a signal sent to rlock is passed on" {
	hold_for 'echo $$ >command-pid; exec log_signals' a
	wait_until 5 file_says signals ready
	kill -s KILL "$RENEWER"
	wait_until 5 is_taken_over "$PID" "$COMMAND"
	for signal in USR1 HUP; do
		kill -s "$signal" "$PID"
	done
	wait_until 5 file_says signals USR1
	wait_until 5 file_says signals HUP
	kill -s TERM "$PID"
	wait_until 5 file_says signals TERM
	let_go
	ended_with 0
}

@test "with the renewer killed a signal that the command has had is not passed on again" {
	in_background rlock run a -- log_signals
	wait_until 5 file_says signals ready
	kill -s USR1 "$PID"
	wait_until 5 file_says signals USR1
	kill -s KILL "$(renewer_of "$PID")"
	kill -s USR2 "$PID"
	wait_until 5 file_says signals USR2
	let_go
	ended_with 0
	assert_equal "$(grep -cx USR1 signals)" 1
}

@test "with the renewer killed a lost lock terminates the command, and ends rlock with 76" {
	hold_and_know a -t 2s
	kill -s KILL "$RENEWER"
	wait_until 5 is_taken_over "$PID" "$COMMAND"
	redis del a >/dev/null
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
	is_gone "$COMMAND"
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

@test "with the renewer killed --max-run and --lease end the command with 124" {
	local option
	for option in '--max-run 2s' '-l 3s'; do
		rm -f command-pid
		# shellcheck disable=SC2086
		hold_and_know a $option --grace 200ms
		kill -s KILL "$RENEWER"
		ended_with 124
		is_gone "$COMMAND"
		no_keys
	done
}

@test "with the renewer killed and then rlock the lock is free after a lease, and nothing of rlock's runs" {
	hold_and_know a -t 1s
	kill -s KILL "$RENEWER"
	wait_until 5 is_taken_over "$PID" "$COMMAND"
	kill -s KILL "$PID"
	wait_until 5 nothing_runs
	is_free_after_lease a 1000
	is_running "$COMMAND"
}

@test "with the renewer killed under a lock that its command shares, one hold is released and one stays" {
	in_background rlock run -t 2s a -- sh -c 'rlock run -t 2s a -- sh -c "echo \$\$ >command-pid; exec until_let_go"; touch inner; comes_true test -e out'
	wait_until 5 test -s command-pid
	COMMAND=$(<command-pid)
	assert_equal "$(hold_count a)" 2
	parent_of "$COMMAND"
	name_of "$PARENT"
	assert_equal "$NAME_OF_PROCESS" rlock-renewer
	kill -s KILL "$PARENT"
	stays 2.5 is_running "$COMMAND"
	let_go
	wait_until 5 file_exists inner
	assert_equal "$(hold_count a)" 1
	touch out
	ended_with 0
	no_keys
}

# The renewer writes down how the command ended, and rlock has not heard it yet.
@test "a renewer that its command kills at its own end loses no exit status" {
	local turn status
	for ((turn = 0; turn < 40; turn++)); do
		status=$((turn % 5 * 60))
		run "-$status" rlock run -t 2s a -- sh -c "kill -s KILL \$PPID; exit $status"
		assert_output ''
	done
	no_keys
}

# ends_about_then LANE: the renewer is killed by a process of the command, sooner or later than that ends: before the renewer has
# seen the end, while it says so, or behind that.
ends_about_then() {
	local i status want
	for ((i = 0; i < 25; i++)); do
		want=$((RANDOM % 256)) status=0
		rlock run -t 2s "lock$1" -- sh -c '
			renewer=$PPID
			(j=0; while [ $j -lt "$0" ]; do j=$((j + 1)); done; kill -s KILL $renewer) >/dev/null 2>&1 &
			exit "$1"' $((RANDOM % 2000)) "$want" || status=$?
		[ "$status" = "$want" ] || echo "$status, not $want"
	done >>wrong 2>&1
}

@test "a renewer that is killed about when its command ends loses no exit status" {
	local lane lanes=()
	for lane in 1 2 3 4; do
		ends_about_then "$lane" &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	[ ! -s wrong ] || fail "$(cat wrong)"
	wait_until 5 no_keys
	wait_until 5 nothing_runs
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
	stays 2.5 holds_on a "$RENEWER" "$COMMAND"
	assert_equal "$(cat signals)" ready
	let_go
	ended_with 0
	no_keys
}

# ---- the renewer stopped ----

@test "a stopped renewer does not hold up the end" {
	hold_for 'echo $$ >command-pid; until_let_go; exit 7' a
	kill -s STOP "$RENEWER"
	let_go
	took_less 5 ended_with 7
	said_nothing
	no_keys
	nothing_runs
}

@test "a stopped renewer does not hold up SIGTERM, SIGINT or SIGQUIT" {
	for signal in TERM INT QUIT; do
		rm -f command-pid
		hold_and_know a
		kill -s STOP "$RENEWER"
		kill -s "$signal" "$PID"
		took_less 5 ended_with $((128 + $(kill -l "$signal")))
		is_gone "$COMMAND"
		no_keys
		nothing_runs
	done
}

@test "a renewer that was stopped for less than a third of the lease has lost nothing" {
	hold_and_know a -t 3s
	kill -s STOP "$RENEWER"
	let_pass 0.5
	kill -s CONT "$RENEWER"
	stays 3 holds_on a "$PID" "$COMMAND"
	let_go
	ended_with 0
	said_nothing
	no_keys
}

@test "rlock that goes on after its lease, with a renewer that stays stopped, terminates the command at once" {
	hold_and_know a -t 2s
	kill -s STOP "$RENEWER"
	wait_closely 5 is_stopped "$RENEWER"
	kill -s STOP "$PID"
	wait_until 10 is_free a
	kill -s CONT "$PID"
	took_less 0.5 wait_closely 5 is_gone "$COMMAND"
	ended_with 76
	no_keys
}

@test "a renewer that stays stopped does not let the command run on beside another owner" {
	hold_for 'escape escaped child session; echo $$ >command-pid; exec until_let_go' a -t 2s --grace 200ms --wait-all
	kill -s STOP "$RENEWER"
	rival_waits a
	let_pass 2.5
	let_go
	rival_entered
	wait_until 10 is_gone "$PID"
	wait_until 5 nothing_runs
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

@test "with rlock killed the renewer keeps the lock until the command has ended, and releases it" {
	hold_and_know a -t 2s
	kill -s KILL "$PID"
	stays 3 holds_on a "$RENEWER" "$COMMAND"
	let_go
	wait_until 3 no_keys
	wait_until 3 nothing_runs
}

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
