#!/usr/bin/env bats
# The processes of a command try to escape, in the ways that tests/tools/escape.c lists. rlock, its renewer or both are killed:
# while they wait, when the lock is granted, while the command runs, during its termination, or during the release.
#
# Promised: with --wait-all, or when the command is terminated, all its processes have ended before another owner acquires the lock. If both
# rlock and its renewer were killed, nothing is promised.

load chaos
load ../lib/hold_processes

BLIND=--bounding-set=-sys_ptrace,-sys_admin,-perfmon
GRACE_MS=200
RUN_MS=1500

VICTIMS=(rlock renewer both)
MOMENTS=(wait grant run termination release)
ENDS=(wait_all max_run sigterm lease)

# plan NUMBER: sets VICTIM, MOMENT, END and KIND, so that successive NUMBERs cover all combinations of the first three. Sets
# ESCAPING to a random choice of the sorts of processes in ESCAPERS. Sets UNSEEING to words that are put before rlock, and adds to
# WHERE.
plan() {
	local index=$(($1 - 1))
	VICTIM=${VICTIMS[index % 3]}
	MOMENT=${MOMENTS[index / 3 % 5]}
	END=${ENDS[(index + index / 15) % 4]}
	KIND=${KINDS[(index / 3 + index / 60) % 4]}
	# rlock cannot be sent SIGTERM if it has been killed before that: let --max-run end the command instead.
	if [ "$END" = sigterm ] && [ "$VICTIM" != renewer ] && [[ $MOMENT = @(wait|grant|run) ]]; then
		END=max_run
	fi
	shuffle "${ESCAPERS[@]}"
	draw 1 ${#SHUFFLED[@]}
	ESCAPING=("${SHUFFLED[@]:0:DRAWN}") UNSEEING=()
	# In half of the cells rlock may not read /proc of undumpable processes, as if a user without capabilities had started it.
	if (($1 % 2)) && setpriv "$BLIND" true 2>/dev/null; then
		UNSEEING=(setpriv "$BLIND")
	fi
	WHERE="$VICTIM killed, $MOMENT, $END, $KIND, ${ESCAPING[*]}${UNSEEING:+, unseen}, $WHERE"
}

# hold: starts an rlock whose command starts the processes ESCAPING. Sets HOLDER, and STATUS, the exit status that it must have.
hold() {
	local options=(-t 5s --grace "${GRACE_MS}ms")
	STATUS=124
	case $END in
	wait_all) STATUS=0 options+=(--wait-all) ;;
	max_run) options+=(--max-run "${RUN_MS}ms") ;;
	lease) options=(-l 5s --grace "${GRACE_MS}ms") ;;
	sigterm) STATUS=143 ;;
	esac
	in_background sh -c 'exec "$@" 2>stderr-holder' sh "${UNSEEING[@]}" rlock "$(verb_of "$KIND")" "${options[@]}" "$NAME" -- \
		sh -c 'escape escaped "$@" && exec inside command' sh "${ESCAPING[@]}"
	HOLDER=$PID
}

# start_recording_checker: another owner waits for the lock. When it has the lock, it writes "alone" to the file "entered", or "beside" if an
# escaped process still runs. Sets CHECKER.
start_recording_checker() {
	in_background rlock "$(verb_of "$(excluded_kind "$KIND")")" -w 40s "$NAME" -- sh -c '
		if [ ! -e escaped ] || flock looking flock -n -x escaped true; then echo alone; else echo beside; fi >entered.new
		mv entered.new entered'
	CHECKER=$PID
}

# kill_victim US: kills VICTIM at a random moment within that time. Sets KILLED to VICTIM, or to nothing if the holder had already ended.
kill_victim() {
	local victims=()
	draw 0 "$1"
	spin "$DRAWN"
	find_renewers "$HOLDER"
	[ "$VICTIM" = renewer ] || victims+=("$HOLDER")
	[ "$VICTIM" = rlock ] || victims+=("${RENEWERS[@]}")
	KILLED=
	is_running "$HOLDER" && ((${#victims[@]} > 0)) || return 0
	kill -s KILL "${victims[@]}" || return 0
	KILLED=$VICTIM
	injected
}

# Whether the command runs, or the holder has ended.
is_inside_or_over() {
	[ -s in-command ] || ! is_running "$HOLDER"
}

# end_command: makes the command end, or sends SIGTERM to rlock. --max-run and --lease need nothing.
end_command() {
	case $END in
	wait_all) touch out-command ;;
	sigterm) kill -s TERM "$HOLDER" || : ;;
	esac
}

# vacate: releases the lock that the holder waits for.
vacate() {
	rlock unlock --owner other "$NAME" || broke "unlock: $?"
}

# await_termination: call it when the command has started. Waits until shortly before --max-run or --lease terminates it. Then
# calls end_command.
await_termination() {
	case $END in
	max_run) let_pass_ms $((RUN_MS - 50)) ;;
	lease) let_pass_ms 3700 ;;
	esac
	end_command
}

# strike_at_moment: waits until MOMENT, kills VICTIM, and lets the rest happen.
strike_at_moment() {
	case $MOMENT in
	wait | grant) wait_until_each_ms 20 has_renewer "$HOLDER" ;;
	*) wait_until_each_ms 30 is_inside_or_over ;;
	esac
	case $MOMENT in
	wait)
		kill_victim 300000
		vacate
		;;
	grant)
		vacate
		kill_victim 12000
		;;
	run)
		kill_victim 500000
		end_command
		;;
	termination)
		await_termination
		kill_victim $(((GRACE_MS + 300) * 1000))
		;;
	release)
		await_termination
		if [ "$END" = wait_all ]; then
			let_pass_ms 300
			end_commands
		else
			wait_until_each_ms 30 no_escaped_process_runs
		fi
		kill_victim 10000
		;;
	esac
}

# judge: the checker must acquire the lock in time, and must not find an escaped process.
judge() {
	# With --wait-all the escaped processes live until end_commands, and the lock must be held until then.
	if [ "$END" = wait_all ] && [ "$KILLED" != both ]; then
		if [ -s in-command ] && escaped_process_runs; then
			let_pass_ms 700
			! [ -e entered ] || [ "$(<entered)" != beside ] || violated 'another owner beside processes that are waited for'
		fi
		end_commands
	fi
	wait_until 20 file_exists entered || {
		violated "the next one does not get in: $(said_by holder)"
		return 0
	}
	[ "$KILLED" = both ] || [ "$(<entered)" = alone ] || violated 'another owner beside processes of the command'
	must_end 0 "$CHECKER" 'the next one'
	# End the command only in these cells. In the others rlock must terminate it, which can happen after the checker has had
	# the lock, if the renewer was killed while it waited.
	if [ "$END" = wait_all ] || [[ $KILLED = @(rlock|both) ]]; then
		end_commands
	fi
	[[ $KILLED = @(rlock|both) ]] || must_end "$STATUS" "$HOLDER" holder
}

# escapers NUMBER: the function of each cell.
escapers() {
	plan "$1"
	if [[ $MOMENT = @(wait|grant) ]]; then
		rlock "$(verb_without_command "$(excluded_kind "$KIND")")" --owner other -l 60s "$NAME" && hold && wait_until 30 listen 1 || return
	else
		hold
		wait_until 30 is_inside_or_over
	fi
	start_recording_checker
	strike_at_moment
	# A holder that was killed while it waited runs no command. If the command did start after all, end it.
	wait_until 20 is_inside_or_over
	[[ $MOMENT != @(wait|grant) ]] || end_command
	repeated
	judge
}

@test "escapers: no process of a command still runs when the next owner acquires the lock, also when rlock or its renewer was killed" {
	scenario 'escapers' '' 120 8 escapers
}
