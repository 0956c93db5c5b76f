#!/usr/bin/env bats
# bats file_tags=long
# Leftover processes of a command: they run on when the command ended by itself, and --wait-all keeps the lock until the last one has
# ended. A nested rlock releases its lock, instead of leaving it to its lease.

load ../lib/usual
load ../lib/hold_processes

setup() {
	directory_setup
	# Create a command that leaves three processes running: a child, an orphan in its own session, and a child of such an
	# orphan. The command itself ends as END says.
	cat >leave <<-'EOS'
		#!/bin/sh
		run_until_ended >/dev/null 2>&1 3>&- & echo $! >>left
		(setsid sh -c 'echo $$ >>left; exec run_until_ended >/dev/null 2>&1' 3>&- &)
		(setsid sh -c 'run_until_ended & echo $! >>left; wait' >/dev/null 2>&1 3>&- &)
		until [ "$(wc -l <left)" = 3 ]; do sleep 0.02; done
		eval "$END"
	EOS
	chmod +x leave
}

# run_leave END [OPTION...]: starts `rlock run a` with the command ./leave, and standard error in the file "stderr". Sets PID, and
# LEFT to the pids of the leftover processes.
run_leave() {
	rm -f left
	END=$1 record_stderr rlock run "${@:2}" a -- ./leave
	wait_until 20 has_line_count left 3
	mapfile -t LEFT <left
	BACKGROUND+=("${LEFT[@]}")
}

# wait_for_left END OPTION...: as run_leave, with --wait-all. Returns when the command itself has ended.
wait_for_left() {
	run_leave "$1" --wait-all "${@:2}"
	wait_until 20 has_no_child "$PID" leave
}

nothing_left_runs() {
	local pid
	for pid in "${LEFT[@]}"; do
		is_gone "$pid" || return
	done
}

@test "when a command ends by itself its background processes run on, and the lock is released immediately" {
	local status end pid
	while read -r status end; do
		run_leave "$end"
		[ "$status" != 129 ] || wait_until 20 file_exists ready
		[ "$status" != 129 ] || kill -s HUP "$PID"
		ended_with "$status"
		no_keys
		stderr_is_empty
		for pid in "${LEFT[@]}"; do
			is_running "$pid"
		done
	done <<-'END'
		0 :
		137 kill -s KILL $$
		129 touch ready; exec run_until_ended
	END
}

@test "--wait-all keeps the lock until the last process of the command has ended, and rlock exits with the command's status" {
	wait_for_left 'exit 3' -t 9s
	await_renewal a 9000
	kill -s KILL "${LEFT[0]}" "${LEFT[1]}"
	wait_until 20 is_gone "${LEFT[1]}"
	stays_true_for 0.3 is_held a
	end_commands
	ended_with 3
	no_keys
	nothing_left_runs
	stderr_is_empty
}

@test "signals during --wait-all reach the leftover processes, and SIGTERM terminates them; the status is the command's" {
	in_background rlock run --wait-all --grace 4s a -- sh -c 'log_signals & exit 3'
	wait_until 20 file_has_line signals ready
	wait_until 20 has_no_child "$PID" sh
	kill -s USR1 "$PID"
	wait_until 20 file_has_line signals USR1
	is_held a
	kill -s TERM "$PID"
	ended_with 3
	file_has_line signals TERM
	no_keys
}

@test "a lock lost during --wait-all is reported, and the leftover processes are terminated" {
	wait_for_left : -t 6s
	redis del a
	ended_with 76
	nothing_left_runs
	stderr_is_one_line '^rlock: a: lock lost at '
}

@test "while --wait-all waits for an idle daemon rlock and its renewer sleep" {
	not_under_valgrind 'it makes calls of its own'
	wait_for_left :
	# Poll, since in the first seconds the two still have work to do after their start.
	wait_until 20 wake_rarely "$PID" "$(renewer_of "$PID")"
	end_commands
	ended_with 0
}

# wake_rarely PID...: whether these processes wake at most 24 times in the next 3 s.
wake_rarely() {
	local before
	before=$(wakes "$@")
	pause_for 3
	(($(wakes "$@") - before <= 24))
}

wakes() {
	local files=("${@/%//status}")
	awk '/^voluntary_ctxt_switches/ { sum += $2 } END { print sum }' "${files[@]/#//proc/}"
}

# hold_nested: starts an rlock with --max-run that holds "a" for a nested rlock, which holds "b" for a command that ignores
# SIGTERM. Sets INNER.
hold_nested() {
	in_background rlock run -t 3m --max-run 12s --grace 500ms a -- rlock run -t 3m b -- sh -c '
		escape escaped child; trap "" TERM; echo $$ >inner; while :; do sleep 0.02; done'
	wait_until 5 test -s inner
	INNER=$(<inner)
	# A test that is skipped after this ends at once: otherwise the command runs on until --max-run terminates it.
	BACKGROUND+=("$INNER")
}

@test "terminating a command with a nested rlock releases the inner lock after the inner command has ended" {
	hold_nested
	start_checker b
	checker_found_none
	is_gone "$INNER"
	ended_with 124
	wait_until 5 no_keys
}

@test "terminating a command leaves a slow inner renewer the time to release its lock" {
	local began_ms
	# Try again if this test is late: the outer rlock kills the inner command 12.5 s after its start, and the inner renewer 5 s later.
	for _ in 1 2 3; do
		rm -f inner
		redis flushall >/dev/null
		began_ms=$(now_ms)
		hold_nested
		parent_of "$INNER"
		stop_by_debugger "$PARENT"
		wait_until 26 is_gone "$INNER"
		pause_for 1
		! kill -KILL "$DEBUGGER" 2>/dev/null || break
		(($(now_ms) - began_ms > 17000)) || fail 'the inner renewer did not get the time'
		ended_with 124
	done
	wait_until 5 is_free b
	ended_with 124
}

@test "an inner renewer that hangs does not delay the end of a terminated command" {
	hold_nested
	parent_of "$INNER"
	stop_by_debugger "$PARENT"
	takes_less_than 26 ended_with 124
	is_free a
	is_gone "$INNER"
}

@test "with --wait-all the renewer does not scan all processes at each end of many orphans" {
	local renewer before
	[ "$(id -u)" = 0 ] || skip 'only root sees how much another process reads'
	in_background rlock run --wait-all a -- sh -c '
		for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do run_until_ended & done 3>&-
		sh -c "until [ -e end-commands ]; do (sh -c : &); sleep 0.005; done" 3>&- &'
	wait_until 10 has_renewer "$PID"
	renewer=$(renewer_of "$PID")
	wait_until 10 has_child "$PID" run_until_ended
	before=$(reads_of "$renewer")
	pause_for 3
	# This allows for scans of /proc, each of which takes 80 reads, and some reads for each process that ends.
	(($(reads_of "$renewer") - before < 10000)) || fail "read $(($(reads_of "$renewer") - before)) times"
	end_commands
	ended_with 0
	no_keys
}

reads_of() {
	awk '/^syscr/ { print $2 }' "/proc/$1/io"
}
