#!/usr/bin/env bats
# bats file_tags=long
# A file system that does not answer hangs the renewer, so that not even SIGKILL ends it: rlock takes over in time, or ends the command
# before the lease ends. And the renewer itself makes no call that a foreign file system could hang.

load ../lib/usual
load ../lib/hold_processes
load ../lib/hung_file_system

# needs_hung_file_system [TARGET]: the link "mnt/l" leads to TARGET, or to the socket of the server.
needs_hung_file_system() {
	can_mount || skip 'only root can mount a file system, with /dev/fuse'
	mount_hung_file_system "${1-$SERVER_SOCKET}" || skip 'no file system of FUSE here'
	set_on_file_system
}

# renews_alone: asserts that the renewer of the lock "a", whose lease is 9 s, renews it. rlock is stopped meanwhile: on a busy machine
# it would replace a renewer that is a second late.
renews_alone() {
	kill -s STOP "$PID"
	await_renewal a 9000
	hold_is_alive a "$RENEWER" "$COMMAND"
	kill -s CONT "$PID"
}

# on_file_system COMMAND [ARG...]: starts COMMAND as in_background does, in the mount namespace of the hung file system.
on_file_system() {
	in_background "${ON_FILE_SYSTEM[@]}" "$@"
}

@test "the lock of a descriptor is renewed while its file system hangs, and released when its process ends" {
	needs_hung_file_system
	echo 'ttl = 9s' >conf
	on_file_system env RLOCK_CONFIG="$PWD/conf" sh -c 'exec 9>mnt/f; rlock flock 9 && echo $$ >has; run_until_ended'
	wait_until 10 test -s has
	touch switches/getattr switches/flush
	# The renewer checks the descriptor several times before this renewal.
	await_renewal "$PWD/mnt/f" 9000
	kill -KILL "$(<has)"
	rm switches/getattr switches/flush
	wait_until 10 is_free "$PWD/mnt/f"
	end_commands
}

@test "one renewer renews the lock although closing 2,000 inherited descriptors hangs" {
	needs_hung_file_system
	on_file_system bash -c 'ulimit -n 4096; for fd in {1000..2999}; do eval "exec $fd>mnt/f"; done; : >switches/flush
		exec rlock run -t 9s a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	# Wait for a long time, since bash must first open 2,000 files there.
	wait_until 60 test -s command-pid
	find_hold_processes
	wait_until 10 grep -q flush switches/asked
	renews_alone
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
	record_stderr sh -c 'exec 9>file; exec "$@"' sh refuse stopped rlock-helper clone STOP 1 rlock run -t 9s a -- sh -c "$REPORT_PID_AND_RUN"
	find_hold_processes
	wait_until 10 test -s stopped
	closer=$(awk '{ print $4 }' stopped)
	renews_alone
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
	local closer
	# The parent adopts orphans, and reaps none.
	cat >parent <<-'EOS'
		import ctypes, os, subprocess, sys
		PR_SET_CHILD_SUBREAPER = 36
		ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
		status = subprocess.Popen(sys.argv[1:], close_fds=False).wait()
		children = open(f'/proc/self/task/{os.getpid()}/children').read().split()
		names = [open(f'/proc/{pid}/comm').read().strip() for pid in children]
		open('left', 'w').write(f'status {status}, left: {[name for name in names if name != "refuse"]}')
		open('over', 'w')
	EOS
	in_background sh -c 'exec 9>file; exec "$@"' sh python3 -IS parent refuse stopped rlock-helper clone STOP 1 rlock run a -- sh -c "$REPORT_PID_AND_RUN"
	wait_until 30 test -s stopped
	read -r _ _ _ closer _ <stopped
	# Raise the priority of this helper: rlock waits for its end for only 5 s, and leaves it after that.
	run_in_real_time "$closer"
	wait_until 10 test -s command-pid
	find_only_renewer
	end_commands
	wait_until 10 is_gone "$RENEWER"
	kill -s CONT "$closer"
	wait_until 10 file_exists over
	assert_equal "$(<left)" 'status 0, left: []'
}

@test "when SIGKILL does not end a hung renewer, rlock terminates the command before the lease ends, with 76 and the reason" {
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 15s a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	find_hold_processes
	wait_until 10 is_renewed a 15000
	touch switches/readlink
	redis client kill type normal skipme yes >/dev/null
	wait_until 10 grep -q readlink switches/asked
	wait_until 20 is_gone "$COMMAND"
	is_held a
	ended_with 76
	stderr_is_one_line '^rlock: a: lock lost at [0-9T:+-]+: not renewed for [0-9.]+s: the renewer hangs in the kernel; '
	is_running "$RENEWER"
	rm switches/readlink
	wait_until 10 is_gone "$RENEWER"
}

# end_command_below_hang SCRIPT [OPTION...]: the renewer of a lock for 24 s hangs, and SIGKILL does not end it. rlock takes over, and the
# command ends. SCRIPT is a command for sh.
end_command_below_hang() {
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -v -u "unix://$PWD/mnt/l" -t 24s "$@" a -- sh -c "$0" 2>stderr' "$@"
	find_hold_processes
	touch switches/readlink
	redis client kill type normal skipme yes >/dev/null
	wait_until 20 file_contains stderr 'rlock takes over'
	end_commands
	wait_until 5 is_gone "$COMMAND"
}

@test "when a hung renewer ends only after the command, rlock releases the lock then" {
	end_command_below_hang "$REPORT_PID_AND_RUN"
	is_held a
	rm switches/readlink
	ended_with 0
	is_free a
	refute grep -q 'release failed' stderr
}

@test "when the command and what it has left end below a hung renewer, rlock with --wait-all exits with the command's status" {
	end_command_below_hang 'until [ -e go ]; do sleep 0.02; done & echo $$ >command-pid; exec run_until_ended' --wait-all
	stays_true_for 0.5 is_running "$PID"
	touch go
	wait_until 7 is_gone "$PID"
	ended_with 0
	is_held a
	rm switches/readlink
	wait_until 10 is_gone "$RENEWER"
}

@test "when the status of a command of another user cannot be read below a hung renewer, rlock exits with 71 and says so" {
	[ "$(id -u)" = 0 ] || skip 'only root can run a command as another user'
	not_under_valgrind 'it runs the command itself'
	record_stderr setpriv --bounding-set=-kill,-sys_ptrace --inh-caps=-all rlock run -v -t 24s a -- \
		setpriv --reuid=65534 --clear-groups sh -c 'until [ -e go ]; do sleep 0.1; done'
	# If the renewer was stopped before it has started the command, another one would start it.
	wait_until 10 has_command "$PID"
	find_renewer "$PID"
	stop_by_debugger "$RENEWER" exit
	wait_until 20 file_contains stderr 'rlock takes over'
	touch go
	ended_with 71
	grep -q 'the exit status of the command cannot be read, because the renewer hangs' stderr
	kill -KILL "$DEBUGGER"
}

# cpu_ms PID: prints how much processor time the process has used.
cpu_ms() {
	local -a fields
	read -ra fields <"/proc/$1/stat"
	echo $(((fields[13] + fields[14]) * 1000 / $(getconf CLK_TCK)))
}

@test "when a renewer hangs for 5 s after the end of the command, rlock exits with the command's status and says that the lock stays" {
	local before_ms
	end_command_below_hang "$REPORT_PID_AND_RUN"
	# rlock sleeps while it waits. Look again long before the 5 s are over, since rlock then ends.
	before_ms=$(cpu_ms "$PID")
	pause_for 1.5
	(($(cpu_ms "$PID") - before_ms < 200)) || fail "rlock used $(($(cpu_ms "$PID") - before_ms)) ms of the processor"
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
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 9s a -- sh -c "exec >/dev/null; echo \$\$ >command-pid; exec run_until_ended" >mnt/f 2>stderr'
	find_hold_processes
	holder=$PID
	start_successor
	wait_until 5 has_waiters a
	# SIGKILL ends a process that waits for a file system while that has not read the request. So rlock takes over, and hangs too.
	kill -s STOP "$FILE_SYSTEM"
	redis client kill type normal skipme yes >/dev/null
	successor_ran_alone
	wait_until 10 is_gone "$RENEWER"
	kill -s CONT "$FILE_SYSTEM"
	ended_with 76 "$holder"
}

@test "what a command has left runs on although an rlock that has taken over hangs while it releases" {
	needs_hung_file_system
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 15s a -- sh -c "echo \$\$ >command-pid; run_until_ended & echo \$! >left
		until [ -e go ]; do sleep 0.02; done" 2>stderr'
	find_hold_processes
	wait_until 5 test -s left
	kill -s KILL "$RENEWER"
	# The lease may still be new: wait for a renewal by rlock.
	await_renewal a 15000
	kill -s STOP "$FILE_SYSTEM"
	redis client kill type normal skipme yes >/dev/null
	: >go
	wait_until 10 is_gone "$COMMAND"
	wait_until 20 is_free a
	stays_true_for 0.5 is_running "$(<left)"
	kill -s CONT "$FILE_SYSTEM"
	end_commands
	wait_until 10 is_gone "$PID"
}

# lose_with_late_hang: a holder, in HOLDER, loses its connection, and a renewer that connects again within the last 2 s of the lease
# hangs. The file system records the attempt in switches/asked.
lose_with_late_hang() {
	ln -s "$SERVER_SOCKET" to-server
	on_file_system sh -c 'exec rlock run -u "unix://$PWD/mnt/l" -t 9s --grace 0 a -- sh -c "echo \$\$ >command-pid; exec run_until_ended" 2>stderr'
	find_hold_processes
	HOLDER=$PID
	start_successor
	wait_until 5 has_waiters a
	# The renewer finds no socket, and retries.
	rm to-server
	redis client kill type normal skipme yes >/dev/null
	POLL_US=10000 wait_until 20 ttl_is_below a 2000
	: >switches/readlink
	successor_ran_alone
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
	start_successor
	wait_until 5 has_waiters a
	kill -KILL "$front"
	touch switches/flush
	rm to-server
	redis client kill type normal skipme yes >/dev/null
	successor_ran_alone
	wait_until 5 grep -q flush switches/asked
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
	find_renewer "$PID"
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
	# Below 10 s, the longest time between two iterations of a waiting renewer: otherwise rlock finds it hung before the wait ends.
	wait_on_file_system -w 9s
	takes_less_than 14 ended_with 75
	stderr_is_one_line '^rlock: a: timed out after 9s: '
	end_hang
}

@test "when SIGKILL does not end a renewer that hangs while it waits without a limit, rlock ends with 71 and the reason" {
	wait_on_file_system
	ended_with 71
	stderr_is_one_line '^rlock: a: the renewer hangs in the kernel$'
	end_hang
}
