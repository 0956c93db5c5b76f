#!/usr/bin/env bats
# A command's processes escape in each way that there is (tests/tools/escape): in sessions of their own, with nothing in their
# environment, where they may not be looked into, forking and ending all the time, as another user. rlock, its renewer, or both are
# killed: while they wait, at the grant, while the command runs, while it is terminated, while the lock is released.
#
# Promised: with --wait-all, or when the command is terminated, none of these processes lives when the lock is free, but where both
# were killed.

load chaos
load ../lib/hold_processes

BLIND=--bounding-set=-sys_ptrace,-sys_admin,-perfmon
GRACE_MS=200
RUN_MS=1500

VICTIMS=(rlock renewer both)
MOMENTS=(wait grant run termination release)
ENDS=(wait_all max_run sigterm lease)

# plan NUMBER: sets VICTIM, MOMENT, END, KIND and WHERE. Numbers go through all of them.
plan() {
	local index=$(($1 - 1))
	VICTIM=${VICTIMS[index % 3]}
	MOMENT=${MOMENTS[index / 3 % 5]}
	END=${ENDS[(index + index / 15) % 4]}
	KIND=${KINDS[(index / 3 + index / 60) % 4]}
	# No one is there to be told by then.
	if [ "$END" = sigterm ] && [ "$VICTIM" != renewer ] && [[ $MOMENT = @(wait|grant|run) ]]; then
		END=max_run
	fi
	shuffle "${ESCAPERS[@]}"
	draw 1 ${#SHUFFLED[@]}
	ESCAPING=("${SHUFFLED[@]:0:DRAWN}") UNSEEING=()
	# Half of them may not look into what is not dumpable, as most users.
	if (($1 % 2)) && setpriv "$BLIND" true 2>/dev/null; then
		UNSEEING=(setpriv "$BLIND")
	fi
	WHERE="$VICTIM killed, $MOMENT, $END, $KIND, ${ESCAPING[*]}${UNSEEING:+, unseen}, $WHERE"
}

# hold: the rlock whose command has such processes; sets HOLDER, and STATUS, with which it is to end.
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

# start_recording_checker: another owner; what it finds when it has the lock stands in "entered".
start_recording_checker() {
	in_background rlock "$(verb_of "$(excluded_kind "$KIND")")" -w 40s "$NAME" -- sh -c '
		if [ ! -e escaped ] || flock looking flock -n -x escaped true; then echo alone; else echo beside; fi >entered.new
		mv entered.new entered'
	CHECKER=$PID
}

# strike US: within that time, at random, what is to be killed is, if it still runs. Sets STRUCK.
strike() {
	local victims=()
	draw 0 "$1"
	spin "$DRAWN"
	find_renewers "$HOLDER"
	[ "$VICTIM" = renewer ] || victims+=("$HOLDER")
	[ "$VICTIM" = rlock ] || victims+=("${RENEWERS[@]}")
	STRUCK=
	is_running "$HOLDER" && ((${#victims[@]} > 0)) || return 0
	kill -s KILL "${victims[@]}" || return 0
	STRUCK=$VICTIM
	injected
}

is_inside_or_over() {
	[ -s in-command ] || ! is_running "$HOLDER"
}

# end_command: the command has been told to end, or to be terminated.
end_command() {
	case $END in
	wait_all) touch out-command ;;
	sigterm) kill -s TERM "$HOLDER" || : ;;
	esac
}

# vacate: the lock that the holder waits for is free.
vacate() {
	rlock unlock --owner other "$NAME" || broke "unlock: $?"
}

# When the termination begins, counted from when the command ran; --wait-all: its processes are ended by themselves.
await_termination() {
	case $END in
	max_run) let_pass_ms $((RUN_MS - 50)) ;;
	lease) let_pass_ms 3700 ;;
	esac
	end_command
}

# strike_at_moment
strike_at_moment() {
	case $MOMENT in
	wait | grant) wait_until_each_ms 20 has_renewer "$HOLDER" ;;
	*) wait_until_each_ms 30 is_inside_or_over ;;
	esac
	case $MOMENT in
	wait)
		strike 300000
		vacate
		;;
	grant)
		vacate
		strike 12000
		;;
	run)
		strike 500000
		end_command
		;;
	termination)
		await_termination
		strike $(((GRACE_MS + 300) * 1000))
		;;
	release)
		await_termination
		if [ "$END" = wait_all ]; then
			let_pass_ms 300
			end_commands
		else
			wait_until_each_ms 30 no_escaped_process_runs
		fi
		strike 10000
		;;
	esac
}

# judge: the next one has the lock, in time and alone.
judge() {
	# With --wait-all they live until end_commands, and so long the lock is held.
	if [ "$END" = wait_all ] && [ "$STRUCK" != both ]; then
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
	[ "$STRUCK" = both ] || [ "$(<entered)" = alone ] || violated 'another owner beside processes of the command'
	must_end 0 "$CHECKER" 'the next one'
	# A holder whose renewer was killed while it waited may have been overtaken: then its command is still to be terminated.
	if [ "$END" = wait_all ] || [[ $STRUCK = @(rlock|both) ]]; then
		end_commands
	fi
	[[ $STRUCK = @(rlock|both) ]] || must_end "$STATUS" "$HOLDER" holder
}

# escapers NUMBER
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
	# What was killed before it had begun ends nothing; what runs is to end.
	wait_until 20 is_inside_or_over
	[[ $MOMENT != @(wait|grant) ]] || end_command
	repeated
	judge
}

@test "escapers" {
	scenario 'escapers' '' 120 8 escapers
}
