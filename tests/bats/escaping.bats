#!/usr/bin/env bats
# bats file_tags=long
# Processes of COMMAND that change their session, environment, user or visibility still count as COMMAND's, also when rlock or its
# renewer was killed. The lock is kept for them (--wait-all), or they are terminated before it is free; orphans are reaped. No other
# process is taken for one of them.

load ../lib/usual
load ../lib/hold_processes

# holds_escapers VICTIM KINDS OPTION...: rlock holds "a" for a command that has started escaping processes of these KINDS; sets PID,
# RENEWER and COMMAND. Then kills VICTIM ("PID" or "RENEWER"), unless it is "none".
holds_escapers() {
	echo "$*" >&2
	rm -f command-pid entered end-commands
	KINDS=$2 hold_for_script 'escape escaped $KINDS && echo $$ >command-pid && exec run_until_ended' a "${@:3}"
	[ "$1" = none ] || kill -s KILL "${!1}"
}

@test "--wait-all keeps the lock for each process that escaped, also when rlock or its renewer was killed" {
	local victim kinds
	while read -r victim kinds; do
		[ "$kinds" != foreign ] || [ "$(id -u)" = 0 ] || continue
		holds_escapers "$victim" "$kinds" -t 15s --wait-all
		kill -s KILL "$COMMAND"
		wait_until 5 is_gone "$COMMAND"
		start_checker a
		stays_true_for 0.5 is_held a
		escaped_process_runs
		end_commands
		checker_found_none
		wait_until 5 no_rlock_runs
		[ "$victim" = PID ] || ended_with 137
		no_keys
	done <<-END
		$(printf 'none %s\n' "${ESCAPERS[@]}")
		PID bare hopper
		RENEWER bare hopper
	END
}

@test "each process that escaped is terminated in time, before the lock is free, also when rlock or its renewer was killed" {
	local status victim kinds options
	# One row has several processes that keep forking and exiting, since a single scan of /proc can miss each of them.
	while IFS='|' read -r status victim kinds options; do
		# shellcheck disable=SC2086
		holds_escapers "$victim" "$kinds" --grace 200ms $options
		((status < 128)) || kill -s $((status - 128)) "$PID"
		start_checker a
		wait_until 20 file_exists entered
		checker_found_none
		no_escaped_process_runs
		wait_until 5 no_rlock_runs
		[ "$victim" = PID ] || ended_with "$status"
	done <<-END
		124|none|${ESCAPERS[*]}|--max-run 12s
		124|RENEWER|${ESCAPERS[*]}|--max-run 12s
		124|PID|hopper hopper hopper hopper|--max-run 12s
		124|PID|${ESCAPERS[*]}|--lease 15s
		143|none|${ESCAPERS[*]}|
		130|none|session bare|
		131|none|session bare|
	END
}

@test "a child that was there before the exec of rlock is neither terminated nor waited for, also when the renewer was killed" {
	local victim
	for victim in none RENEWER; do
		rm -f command-pid
		in_background sh -c 'sleep 60 >/dev/null 2>&1 3>&- & echo $! >before
			exec rlock run --wait-all --max-run 8s --grace 200ms a -- sh -c "$0"' "$REPORT_PID_AND_RUN"
		find_hold_processes
		BACKGROUND+=("$(<before)")
		[ $victim = none ] || kill -s KILL "${!victim}"
		ended_with 124
		is_running "$(<before)"
		no_keys
	done
}

@test "what a child from before the exec of rlock has left is neither terminated nor waited for when the renewer was killed later" {
	in_background sh -c '(until [ -e go ]; do sleep 0.02; done; run_until_ended >/dev/null 2>&1 3>&- & echo $! >left) &
		exec rlock run --wait-all --grace 200ms a -- sh -c "$0"' "$REPORT_PID_AND_RUN"
	find_hold_processes
	touch go
	wait_until 5 test -s left
	BACKGROUND+=("$(<left)")
	wait_until 5 has_parent "$(<left)" "$PID"
	# An rlock that has not seen its new child when it takes over counts it as a process of the command, and terminates it.
	wait_until 5 eval '[ "$(pgrep -P "$PID" | sort)" = "$(printf "%s\n" "$RENEWER" "$(<left)" | sort)" ]'
	pause_for 0.2
	wait_until 5 grep -q '^State:.S' "/proc/$PID/status"
	kill -s KILL "$RENEWER"
	rlock stop a
	ended_with 124
	is_running "$(<left)"
	no_keys
}

@test "orphans are reaped while the command runs, so that the command is the renewer's only child" {
	# Start many processes that end at the same time: some before their children, some after them.
	hold_for_script 'for i in $(seq 20); do
		(sh -c "exit 3" & exit 0)
		(setsid sh -c "(exit 5) & exit 4" &)
		(sh -c "sh -c \"kill -9 \\$\\$\" & exit 0" &)
	done; '"$REPORT_PID_AND_RUN" a
	# pgrep also finds zombies, so there must be none.
	wait_until 20 eval '[ "$(pgrep -P "$PID") $(pgrep -P "$RENEWER")" = "$RENEWER $COMMAND" ]'
	end_commands
	ended_with 0
	no_keys
}
