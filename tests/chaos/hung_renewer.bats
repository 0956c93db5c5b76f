#!/usr/bin/env bats
# The renewer hangs for longer than a lease: in a system call, stopped by a debugger, or on a file system that does not answer.
# Promised: the lock is kept for its command or process, which runs on, and no other owner acquires the lock.

load chaos
load ../lib/hung_file_system

# The system calls that a renewer makes in each iteration of its loop, and in a renewal.
RENEWER_CALLS=ppoll,poll,sendto,recvfrom,read,timerfd_settime

# hold_hanging HOW NUMBER: starts the cell's holder with a short lease, and prepares what will make its renewer hang (HOW: an
# element of WAYS). Sets HOLDER and RENEWER.
hold_hanging() {
	case $1 in
	call)
		CLOCK=(refuse "$CELL/hangs" rlock-renewer "$RENEWER_CALLS" WAIT 1+)
		;;
	output)
		mount_hung_file_system "$SERVER_SOCKET" || return
		set_on_file_system 'exec 7>mnt/f; : >switches/flush'
		CLOCK=("${ON_FILE_SYSTEM[@]}")
		;;
	descriptor)
		mount_hung_file_system "$SERVER_SOCKET" || return
		KIND=write NAME=$CELL/mnt/f
		echo 'ttl = 4s' >conf
		set_on_file_system 'exec 9>mnt/f; RLOCK_CONFIG=$PWD/conf rlock flock 9 || exit'
		in_background "${ON_FILE_SYSTEM[@]}" sh -c 'exec "$@" 2>stderr-holder' sh overlap "$LEDGER" exclusive -u "$CELL/leave-holder"
		HOLDER=$PID
		wait_until 30 all_inside "$LEDGER" 1
		return
		;;
	esac
	start_holder_family holder "$KIND" "$LEDGER" -t 4s || return
	wait_until 20 has_renewer_below "$HOLDER"
}

# has_renewer_below PID: whether there is a renewer below the process, or below an rlock that the process has started. Sets RENEWER.
has_renewer_below() {
	find_renewers "$1"
	RENEWER=${RENEWERS[0]-}
	[ "$RENEWER" ]
}

# hang NUMBER: a cell in which the renewer hangs, in one of WAYS.
hang() {
	local how=${WAYS[$1 % ${#WAYS[@]}]}
	KIND=${KINDS[$1 / ${#WAYS[@]} % 4]}
	WHERE="$KIND, $how, $WHERE"
	hold_hanging "$how" "$1" || return
	let_some_pass 1333
	case $how in
	call) echo >hangs ;;
	debugger)
		in_background ptrace_stop "$RENEWER" >held-still
		wait_until 10 test -s held-still || return
		;;
	output) wait_until 10 grep -q flush switches/asked || return ;;
	descriptor) touch switches/getattr switches/flush ;;
	esac
	must_keep_lock "$KIND" 4500 6000
	rm -f hangs switches/*
	finish_contender holder
	must_end 0 "$HOLDER" holder
	must_say holder
}

@test "hung renewer: the lock is kept for its command, which continues" {
	needs_refuse
	WAYS=(call debugger)
	! can_mount || WAYS+=(output descriptor)
	scenario 'hung renewer' '' 64 8 hang
}
