#!/usr/bin/env bats
# bats file_tags=long
# A renewer that hangs in a system call or in a file system that does not answer: rlock takes over in time. And the renewer itself
# makes no call that a foreign file system could hang.

load ../lib/usual
load ../lib/hold_processes
load ../lib/hung_file_system
load ../lib/proxying

# ---- rlock takes over ----

# hang_renewer CALLS FIRST [OPTION...]: starts rlock with a lease of 3 s. Its renewer hangs in one of these system calls, from call number
# FIRST on.
hang_renewer() {
	echo >hangs
	record_stderr refuse hangs rlock-renewer "$1" WAIT "$2" rlock run -t 3s "${@:3}" a -- sh -c "$REPORT_PID_AND_RUN"
	find_hold_processes
	wait_until 10 grep -q "[0-9]" hangs
}

@test "a renewer that hangs in a call is killed, and rlock renews the lease for the command and releases it" {
	needs_refuse
	# The renewer makes each of these calls before it sends a renewal.
	hang_renewer sendto,sendmsg,write 4+
	wait_until 10 is_gone "$RENEWER"
	stays_true_for 4 hold_is_alive a "$PID" "$COMMAND"
	rm hangs
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "rlock renews the lease for the command while a debugger keeps the killed renewer as a zombie" {
	hold_with_pids a -t 6s
	stop_by_debugger "$RENEWER"
	kill -s STOP "$DEBUGGER"
	stays_true_for 10 hold_is_alive a "$PID" "$COMMAND"
	is_gone "$RENEWER"
	kill -KILL "$DEBUGGER"
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "a renewer that is stopped while its renewal is not answered is replaced before a lease of a second is lost" {
	local tries
	start_realtime_proxy
	# Try again if the lock was lost: rlock has 0.2 seconds for the renewal, which can be too few on a busy machine.
	for ((tries = 10; tries > 0; tries--)); do
		rm -f command-pid
		hold_with_pids a -t 1s --grace 100ms
		proxy hold-reply "$RENEW"
		wait_until 5 faults_happened
		kill -s STOP "$RENEWER"
		wait_until 5 is_gone "$RENEWER"
		gone 1500 "$PID" >/dev/null || break
		ended_with 76
	done
	assert [ "$tries" -gt 0 ]
	end_commands
	ended_with 0
	stderr_is_empty
}

@test "a renewer that cannot reach its server is not killed" {
	local tries
	# Try again if the renewer was killed: rlock also kills a renewer that a busy machine has delayed by more than a second.
	for ((tries = 5; tries > 0; tries--)); do
		rm -f command-pid
		hold_with_pids a -t 6s
		kill -s STOP "$SERVER_PID"
		gone 4000 "$RENEWER" >/dev/null || break
		kill -s CONT "$SERVER_PID"
		kill -s KILL "$PID" "$COMMAND"
		wait_until 10 no_keys
	done
	assert [ "$tries" -gt 0 ]
	kill -s CONT "$SERVER_PID"
	end_commands
	ended_with 0
	no_keys
}

@test "rlock wakes up at most once per renewal while the renewer renews, and once in ten seconds while the renewer waits" {
	local holder waiter before of_waiter
	hold_with_pids a -t 6s
	holder=$PID
	in_background rlock run a -- true
	waiter=$PID
	wait_until 5 has_waiters a
	pause_for 1.5
	before=$(wake_ups "$holder") of_waiter=$(wake_ups "$waiter")
	pause_for 8
	before=$(($(wake_ups "$holder") - before)) of_waiter=$(($(wake_ups "$waiter") - of_waiter))
	((before <= 5)) || fail "the holder woke $before times"
	((of_waiter <= 2)) || fail "the waiter woke $of_waiter times"
	end_commands
	ended_with 0 "$holder"
	ended_with 0 "$waiter"
}

wake_ups() {
	awk '/^voluntary_ctxt_switches/ { print $2 }' "/proc/$1/status"
}

@test "a renewer that hangs while it waits is replaced, and the other one acquires the lock" {
	rlock lock --owner other -l 60s a
	record_stderr rlock run a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 5 has_waiters a
	RENEWER=$(renewer_of "$PID")
	stop_by_debugger "$RENEWER"
	wait_until 20 is_gone "$RENEWER"
	rlock unlock --owner other a
	find_hold_processes
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "a renewer that hangs when it has just started the command, after a wait, is replaced before the lease ends" {
	needs_refuse
	rlock lock --owner other -l 60s a
	echo >hangs
	# Let the renewer hang in setsid, which it calls when the command has started.
	record_stderr refuse hangs rlock-renewer setsid WAIT 1 rlock run -t 4s a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 5 has_waiters a
	# Wait until rlock sleeps: in its first second it still wakes up.
	pause_for 1.5
	rlock unlock --owner other a
	find_hold_processes
	stays_true_for 6 hold_is_alive a "$PID" "$COMMAND"
	is_gone "$RENEWER"
	rm hangs
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "when a renewer hangs that has just started the command, no other command gets a lock with a short lease before the first has ended" {
	needs_refuse
	echo >hangs
	record_stderr refuse hangs rlock-renewer setsid WAIT 1 rlock run -t 1s a -- sh -c "$REPORT_PID_AND_RUN"
	start_contender
	wait_until 10 is_replaced_or_over
	rm hangs
	end_commands
	contender_ran_alone
	no_keys
}

# is_replaced_or_over: whether the renewer that hangs was killed and its command still has the lock, or another command got it.
is_replaced_or_over() {
	[ -s acquired ] || is_gone "$(awk 'NF > 0 { print $NF }' hangs)"
}

# start_contender: when the command of the hold runs, another rlock begins to wait for the lock "a". Its command writes the state of
# the first command to "acquired": "none", or the letter in /proc, which is Z for a zombie.
start_contender() {
	wait_until 10 test -s command-pid
	in_background rlock run -w 60s a -- sh -c 'state=none
		read -r _ _ state _ 2>no-such-process <"/proc/$(cat command-pid)/stat"
		echo "$state" >acquired'
	CONTENDER=$PID
}

# contender_ran_alone: asserts that the contender got the lock, and that the first command had ended before.
contender_ran_alone() {
	ended_with 0 "$CONTENDER"
	assert_regex "$(<acquired)" '^(none|Z|X)$'
}

# A command for sh: as REPORT_PID_AND_RUN, but only SIGKILL ends it.
IGNORE_TERM="trap '' TERM; $REPORT_PID_AND_RUN"

@test "when a renewer hangs that should send SIGKILL before the end of the lease, rlock sends it in time" {
	needs_refuse
	echo >hangs
	# The renewer sends SIGTERM and SIGCONT to the command, which ignores SIGTERM, and hangs before SIGKILL.
	record_stderr refuse hangs rlock-renewer pidfd_send_signal WAIT 3+ rlock run -l 12s a -- sh -c "$IGNORE_TERM"
	start_contender
	contender_ran_alone
	rm hangs
	no_keys
}

@test "when a renewer hangs that has just started the command, after a wait, rlock terminates the command soon after --max-run" {
	needs_refuse
	rlock lock --owner other -l 60s a
	echo >hangs
	record_stderr refuse hangs rlock-renewer setsid WAIT 1 rlock run --max-run 1s a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 5 has_waiters a
	# Wait until rlock sleeps: in its first second it still wakes up.
	pause_for 1.5
	rlock unlock --owner other a
	wait_until 10 test -s command-pid
	BUSY_FACTOR=1 wait_until 6 is_gone "$(<command-pid)"
	rm hangs
	ended_with 124
	no_keys
}

@test "a renewer that waits for a lock is not killed while its server does not answer" {
	hold_with_pids a
	holder=$PID
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	RENEWER=$(renewer_of "$PID")
	kill -s STOP "$SERVER_PID"
	stays_true_for 13 is_running "$RENEWER"
	kill -s CONT "$SERVER_PID"
	stays_true_for 1 is_running "$RENEWER"
	end_commands
	ended_with 0 "$holder"
	ended_with 0
}

# ---- file systems that do not answer ----

# needs_hung_file_system [TARGET]: the link "mnt/l" leads to TARGET, or to the socket of the server.
needs_hung_file_system() {
	can_mount || skip 'only root can mount a file system, with /dev/fuse'
	mount_hung_file_system "${1-$SERVER_SOCKET}" || skip 'no file system of FUSE here'
	set_on_file_system
}

# on_file_system COMMAND [ARG...]: starts COMMAND as in_background does, in the mount namespace of the hung file system.
on_file_system() {
	in_background "${ON_FILE_SYSTEM[@]}" "$@"
}

@test "the lock of a descriptor is renewed while its file system hangs, and released when its process ends" {
	needs_hung_file_system
	echo 'ttl = 3s' >conf
	on_file_system env RLOCK_CONFIG="$PWD/conf" sh -c 'exec 9>mnt/f; rlock flock 9 && echo $$ >has; run_until_ended'
	wait_until 10 test -s has
	touch switches/getattr switches/flush
	stays_true_for 5 is_held "$PWD/mnt/f"
	kill -KILL "$(<has)"
	rm switches/getattr switches/flush
	wait_until 10 is_free "$PWD/mnt/f"
	end_commands
}

@test "one renewer renews the lock although closing 2,000 inherited descriptors hangs" {
	needs_hung_file_system
	on_file_system bash -c 'ulimit -n 4096; for fd in {1000..2999}; do eval "exec $fd>mnt/f"; done; : >switches/flush
		exec rlock run -t 3s a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	# Wait for a long time, since bash must first open 2,000 files there.
	wait_until 60 test -s command-pid
	find_hold_processes
	wait_until 10 grep -q flush switches/asked
	stays_true_for 4 hold_is_alive a "$RENEWER" "$COMMAND"
	rm switches/flush
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "the process that closes a file for the renewer is called rlock-helper, and ends once the file is closed" {
	needs_hung_file_system
	on_file_system sh -c 'exec 9>mnt/f; : >switches/flush
		exec rlock run a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	find_hold_processes
	wait_until 10 grep -q flush switches/asked
	closer=$(awk '{ print $2 }' switches/asked)
	run -0 ps -o ppid=,comm=,args= -p "$closer"
	assert_output --regexp "^ *$RENEWER rlock-helper +rlock-helper\$"
	rm switches/flush
	wait_until 5 eval '[ ! -e /proc/$closer ]'
	end_commands
	ended_with 0
	stderr_is_empty
}

@test "the renewer renews the lock although the process that closes files for it is stopped, and reaps that process" {
	local closer
	needs_refuse
	record_stderr sh -c 'exec 9>file; exec "$@"' sh refuse stopped rlock-helper clone STOP 1 rlock run -t 3s a -- sh -c "$REPORT_PID_AND_RUN"
	find_hold_processes
	wait_until 10 test -s stopped
	closer=$(awk '{ print $4 }' stopped)
	stays_true_for 4 hold_is_alive a "$RENEWER" "$COMMAND"
	kill -s CONT "$closer"
	wait_until 5 eval '[ ! -e /proc/$closer ]'
	is_running "$RENEWER"
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "rlock reaps the process that closes files for the renewer, also when that process ends after the renewer" {
	needs_refuse
	# The parent adopts orphans, and reaps none.
	cat >parent <<-'EOS'
		import ctypes, os, subprocess, sys
		PR_SET_CHILD_SUBREAPER = 36
		ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		status = subprocess.Popen(sys.argv[1:]).wait()
		children = open(f'/proc/self/task/{os.getpid()}/children').read().split()
		names = [open(f'/proc/{pid}/comm').read().strip() for pid in children]
		open('left', 'w').write(f'status {status}, left: {[name for name in names if name != "refuse"]}')
		open('over', 'w')
	EOS
	in_background sh -c 'exec 9>file; exec "$@"' sh python3 -IS parent refuse stopped rlock-helper clone STOP 1 rlock run a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 10 test -s stopped
	wait_until 10 test -s command-pid
	find_only_renewer
	end_commands
	wait_until 10 is_gone "$RENEWER"
	kill -s CONT "$(awk '{ print $4 }' stopped)"
	wait_until 10 file_exists over
	assert_equal "$(<left)" 'status 0, left: []'
}

@test "when SIGKILL does not end a hung renewer, rlock terminates the command before the lease ends, with 76 and the reason" {
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 6s a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	find_hold_processes
	wait_until 5 is_renewed a 6000
	touch switches/readlink
	redis client kill type normal skipme yes >/dev/null
	wait_until 10 grep -q readlink switches/asked
	wait_until 10 is_gone "$COMMAND"
	is_held a
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+s: the renewer hangs in the kernel; '
	is_running "$RENEWER"
	rm switches/readlink
	wait_until 10 is_gone "$RENEWER"
}

# end_command_below_hang: the renewer of a lock for 15 s hangs, and SIGKILL does not end it. rlock takes over, and the command ends.
end_command_below_hang() {
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -v -u "unix://$PWD/mnt/l" -t 15s a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	find_hold_processes
	touch switches/readlink
	redis client kill type normal skipme yes >/dev/null
	wait_until 10 file_contains stderr 'rlock takes over'
	end_commands
	wait_until 5 is_gone "$COMMAND"
}

@test "when a hung renewer ends only after the command, rlock releases the lock then" {
	end_command_below_hang
	is_held a
	rm switches/readlink
	ended_with 0
	is_free a
	refute grep -q 'release failed' stderr
}

@test "when a renewer hangs for 5 s after the end of the command, rlock exits with the command's status and says that the lock stays" {
	end_command_below_hang
	wait_until 7 is_gone "$PID"
	ended_with 0
	is_held a
	grep -q '^rlock: a: release failed: the renewer hangs in the kernel; the lock expires with its lease$' stderr
	rm switches/readlink
	wait_until 10 is_gone "$RENEWER"
}

@test "when a killed renewer hung on a file system that rlock needs as well, rlock terminates the command before the lease ends" {
	local holder
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 6s a -- sh -c "exec >/dev/null; echo \$\$ >command-pid; exec run_until_ended" >mnt/f 2>stderr'
	find_hold_processes
	holder=$PID
	start_contender
	wait_until 5 has_waiters a
	# SIGKILL ends a process that waits for a file system while that has not read the request. So rlock takes over, and hangs too.
	kill -s STOP "$FILE_SYSTEM"
	redis client kill type normal skipme yes >/dev/null
	contender_ran_alone
	wait_until 10 is_gone "$RENEWER"
	kill -s CONT "$FILE_SYSTEM"
	ended_with 76 "$holder"
}

@test "what a command has left runs on although an rlock that has taken over hangs while it releases" {
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 9s a -- sh -c "echo \$\$ >command-pid; run_until_ended & echo \$! >left
		until [ -e go ]; do sleep 0.02; done" 2>stderr'
	find_hold_processes
	wait_until 5 test -s left
	kill -s KILL "$RENEWER"
	wait_until 10 is_renewed a 9000
	kill -s STOP "$FILE_SYSTEM"
	redis client kill type normal skipme yes >/dev/null
	touch go
	wait_until 10 is_gone "$COMMAND"
	wait_until 20 is_free a
	stays_true_for 0.5 is_running "$(<left)"
	kill -s CONT "$FILE_SYSTEM"
	end_commands
	wait_until 10 is_gone "$PID"
}

# lose_with_late_hang: a holder, in HOLDER, loses its connection, and a renewer that connects again within the last 1.5 s of the lease
# hangs. The file system records the attempt in switches/asked.
lose_with_late_hang() {
	ln -s "$SERVER_SOCKET" to-server
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 9s --grace 0 a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	find_hold_processes
	HOLDER=$PID
	start_contender
	wait_until 5 has_waiters a
	# The renewer finds no socket, and retries.
	rm to-server
	redis client kill type normal skipme yes >/dev/null
	POLL_US=10000 wait_until 20 ttl_is_below a 1500
	touch switches/readlink
	contender_ran_alone
}

@test "when SIGKILL does not end a renewer that hangs just before the end of the lease, rlock kills the command in time" {
	needs_hung_file_system "$PWD/to-server"
	# On a busy machine the attempts to connect can be too far apart for one to hang.
	for _ in 1 2 3 4 5; do
		lose_with_late_hang
		[ ! -e switches/asked ] || break
		rm switches/readlink command-pid acquired
		ended_with 76 "$HOLDER"
	done
	grep -q readlink switches/asked
	# End the hang before waiting for rlock: if SIGKILL ended the renewer, rlock has taken over and hangs as well.
	rm switches/readlink
	ended_with 76 "$HOLDER"
	wait_until 10 is_gone "$RENEWER"
}

@test "when rlock was killed, and the file of --log hangs when the lock is lost, the renewer kills the command in time" {
	local front
	ln -s "$SERVER_SOCKET" to-server
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/to-server" --log mnt/f -t 6s a -- sh -c "$0" 2>stderr' "$IGNORE_TERM"
	find_hold_processes
	front=$PID
	start_contender
	wait_until 5 has_waiters a
	kill -KILL "$front"
	touch switches/flush
	rm to-server
	redis client kill type normal skipme yes >/dev/null
	contender_ran_alone
	grep -q flush switches/asked
	rm switches/flush
	wait_until 10 is_gone "$RENEWER"
}

# wait_on_file_system [OPTION...]: starts an rlock that waits for the lock "a", and then closes its connections. When its renewer
# connects again, it hangs in the kernel.
wait_on_file_system() {
	needs_hung_file_system
	rlock lock --owner other -l 60s a
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" "$@" a -- true 2>stderr' sh "$@"
	wait_until 5 has_waiters a
	RENEWER=$(renewer_of "$PID")
	touch switches/readlink
	redis client kill type normal skipme yes >/dev/null
	redis client kill type pubsub >/dev/null
	wait_until 10 grep -q readlink switches/asked
}

end_hang() {
	is_running "$RENEWER"
	rm switches/readlink
	wait_until 10 is_gone "$RENEWER"
}

@test "when SIGKILL does not end a renewer that hangs while it waits, rlock ends at the end of the wait time with 75" {
	wait_on_file_system -w 4s
	takes_less_than 12 ended_with 75
	stderr_is_one_line '^rlock: a: timed out after 4s: '
	end_hang
}

@test "when SIGKILL does not end a renewer that hangs while it waits without a limit, rlock ends with 71 and the reason" {
	wait_on_file_system
	ended_with 71
	stderr_is_one_line '^rlock: a: the renewer hangs in the kernel$'
	end_hang
}
