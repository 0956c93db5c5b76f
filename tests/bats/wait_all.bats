#!/usr/bin/env bats
# bats file_tags=long
# What a command leaves running: it is left alone where the command ended by itself, and --wait-all keeps the lock
# until the last of it has ended. The lock of an rlock inside is released, not left to its lease.

load ../lib/usual
load ../lib/hold_processes

setup() {
	directory_setup
	# A command with three leftover processes: a child, one in a session of its own that lost its parent, and one
	# that is the child of such a one. It ends as END says.
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

# run_leave END [OPTION...]: `rlock run` of the lock a, for ./leave, its messages in the file "stderr". Sets PID, and LEFT: the
# leftover processes, which run.
run_leave() {
	rm -f left
	END=$1 record_stderr rlock run "${@:2}" a -- ./leave
	wait_until 20 has_line_count left 3
	mapfile -t LEFT <left
	BACKGROUND+=("${LEFT[@]}")
}

# wait_for_left END OPTION...: the same, with --wait-all; returns when the command has ended.
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

@test "a command that ends by itself leaves its background processes alone, and the lock is free at once" {
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

@test "--wait-all keeps the lock until the last process of the command has ended, and its status is the command's" {
	wait_for_left 'exit 3' -t 6s
	wait_until 20 ttl_is_below a 4500
	wait_until 20 is_renewed a 6000
	kill -s KILL "${LEFT[0]}" "${LEFT[1]}"
	wait_until 20 is_gone "${LEFT[1]}"
	stays_true_for 0.3 is_held a
	end_commands
	ended_with 3
	no_keys
	nothing_left_runs
	stderr_is_empty
}

@test "signals while --wait-all waits reach the leftover processes, and SIGTERM terminates them; the status is the command's" {
	in_background rlock run --wait-all --grace 2s a -- sh -c 'log_signals & exit 3'
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

@test "a lock that is lost while --wait-all waits is reported, and the leftover processes are stopped" {
	wait_for_left : -t 6s
	redis del a
	ended_with 76
	nothing_left_runs
	stderr_is_one_line '^rlock: a: lock lost at '
}

@test "while --wait-all waits for an idle daemon rlock and its renewer sleep" {
	not_under_valgrind 'it makes calls of its own'
	wait_for_left :
	# Not at first, while what belongs to the start is done.
	wait_until 20 wake_rarely "$PID" "$(renewer_of "$PID")"
	end_commands
	ended_with 0
}

# wake_rarely PID...: no more than 24 times in the next 3 s.
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

# hold_nested: an rlock that is to end has one inside, which holds "b" for a command that ignores SIGTERM: INNER.
hold_nested() {
	in_background rlock run --max-run 3s --grace 500ms a -- rlock run b -- sh -c '
		escape escaped child; trap "" TERM; echo $$ >inner; while :; do sleep 0.02; done'
	wait_until 5 test -s inner
	INNER=$(<inner)
}

@test "a command that is terminated with an rlock inside: the lock inside is released, and not before its command has ended" {
	hold_nested
	start_checker b
	checker_found_none
	is_gone "$INNER"
	ended_with 124
	wait_until 5 no_keys
}

@test "a renewer inside that is stopped does not hold up the end of a command that is terminated" {
	hold_nested
	parent_of "$INNER"
	kill -s STOP "$PARENT"
	takes_less_than 8 ended_with 124
	is_free a
	is_gone "$INNER"
}

@test "with --wait-all not each end of many orphans makes the renewer look at all processes that are left" {
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
	# 80 for each look, and some for each end.
	(($(reads_of "$renewer") - before < 10000)) || fail "read $(($(reads_of "$renewer") - before)) times"
	end_commands
	ended_with 0
	no_keys
}

reads_of() {
	awk '/^syscr/ { print $2 }' "/proc/$1/io"
}
