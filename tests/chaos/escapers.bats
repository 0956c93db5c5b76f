#!/usr/bin/env bats
# A command's processes escape in each way that there is (tests/tools/escape): in sessions of their own, with nothing in their
# environment, where they may not be looked into, forking and ending all the time, as another user. rlock, its renewer, or both are
# killed: while they wait, at the grant, while the command runs, while it is terminated, while the lock is released.
#
# Promised is: with --wait-all, or when the command is terminated, none of these processes lives when the lock is free, but where both
# were killed.

load chaos
load ../lib/holding

WIDTH=8
BLIND=--bounding-set=-sys_ptrace,-sys_admin,-perfmon
LEASE=(-t 2s)
GRACE_MS=200
RUN_MS=1500

VICTIMS=(rlock renewer both)
MOMENTS=(wait grant run termination release)
ENDS=(wait_all max_run sigterm lease)

# ---- the processes that take part ----

# choose NUMBER: sets VICTIM, MOMENT, END, KIND and WHERE. Numbers go through all of them.
choose() {
	local index=$(($1 - 1))
	begin_chance
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
	ESCAPING=("${SHUFFLED[@]:0:DRAWN}")
	UNSEEING=()
	# Half of them may not look into what is not dumpable, as most users.
	if (($1 % 2)) && setpriv "$BLIND" true 2>/dev/null; then
		UNSEEING=(setpriv "$BLIND")
	fi
	WHERE="$VICTIM killed, $MOMENT, $END, $KIND, ${ESCAPING[*]}${UNSEEING:+, unseen}, cell $1, chance $CHANCE"
}

options_of_end() {
	OPTIONS=("${LEASE[@]}" --grace "${GRACE_MS}ms")
	case $END in
	wait_all) OPTIONS+=(--wait-all) ;;
	max_run) OPTIONS+=(--max-run "${RUN_MS}ms") ;;
	lease) OPTIONS=(-l 2s --grace "${GRACE_MS}ms") ;;
	esac
}

# Another owner has the lock first. Sets WAITED when the holder is to wait for it.
occupy() {
	WAITED=
	[[ $MOMENT = @(wait|grant) ]] || return 0
	WAITED=yes
	rlock "$(verb_without_command "$(rival_kind "$KIND")")" --owner other -l 60s "$NAME"
}

vacate() {
	[ -z "$WAITED" ] || rlock unlock --owner other "$NAME" || broke "unlock: $? ($WHERE)"
	WAITED=
}

# hold: the rlock whose command has such processes; sets HOLDER.
hold() {
	options_of_end
	in_background sh -c 'exec "$@" 2>said' sh "${UNSEEING[@]}" rlock "$(verb_of "$KIND")" "${OPTIONS[@]}" "$NAME" -- \
		sh -c 'escape escaped "$@" && exec inside command' sh "${ESCAPING[@]}"
	HOLDER=$PID
}

# rival: another owner; what it finds when it has the lock stands in "entered".
rival() {
	in_background rlock "$(verb_of "$(rival_kind "$KIND")")" -w 40s "$NAME" -- sh -c '
		if [ ! -e escaped ] || flock looking flock -n -x escaped true; then echo alone; else echo beside; fi >entered.new
		mv entered.new entered'
	RIVAL=$PID
}

# ---- the fault ----

# strike: what is to be killed is, if it still runs. Sets STRUCK.
strike() {
	local victims=()
	find_renewers "$HOLDER"
	case $VICTIM in
	rlock) victims=("$HOLDER") ;;
	renewer) victims=("${RENEWERS[@]}") ;;
	both) victims=("$HOLDER" "${RENEWERS[@]}") ;;
	esac
	STRUCK=
	is_running "$HOLDER" && ((${#victims[@]} > 0)) || return 0
	kill -s KILL "${victims[@]}" 2>/dev/null || return 0
	STRUCK=$VICTIM
	injected
}

# strike_in MS: within that time, at random.
strike_in() {
	draw 0 $(($1 * 1000))
	spin "$DRAWN"
	strike
}

is_in_queue() {
	listen 1
}

is_inside_or_over() {
	[ -s in-command ] || ! runs "$HOLDER"
}

# end_command: the command has been told to end, or to be terminated.
end_command() {
	case $END in
	wait_all) touch out-command ;;
	sigterm) kill -s TERM "$HOLDER" 2>/dev/null || : ;;
	esac
}

# When the termination begins, counted from when the command ran; --wait-all: its processes are ended by themselves.
await_termination() {
	case $END in
	max_run) let_pass_ms $((RUN_MS - 50)) ;;
	lease) let_pass_ms 1000 ;;
	esac
	end_command
}

at_wait() {
	soon 20 has_renewer "$HOLDER"
	strike_in 300
	vacate
}

at_grant() {
	soon 20 has_renewer "$HOLDER"
	vacate
	strike_in 12
}

at_run() {
	soon 30 is_inside_or_over
	strike_in 500
	end_command
}

at_termination() {
	soon 30 is_inside_or_over
	await_termination
	strike_in $((GRACE_MS + 300))
}

at_release() {
	soon 30 is_inside_or_over
	await_termination
	if [ "$END" = wait_all ]; then
		let_pass_ms 300
		touch let-go
	else
		soon 30 none_escaped
	fi
	strike_in 10
}

# ---- what has to come of it ----

expected_status() {
	case $END in
	wait_all) echo 0 ;;
	sigterm) echo 143 ;;
	*) echo 124 ;;
	esac
}

# judge: the next one has the lock, in time and alone.
judge() {
	local status=0 entered
	# With --wait-all they live until they are let go, and the lock is held as long.
	if [ "$END" = wait_all ] && [ "$STRUCK" != both ]; then
		if [ -s in-command ] && some_escaped; then
			let_pass_ms 700
			! [ -e entered ] || [ "$(<entered)" != beside ] || violated "another owner beside processes that are waited for: $WHERE"
		fi
		touch let-go
	fi
	wait_until 20 file_exists entered >/dev/null 2>&1 || {
		violated "the next one does not get in: $WHERE: $(paste -s -d ' ' said)"
		return 0
	}
	entered=$(<entered)
	[ "$STRUCK" = both ] || [ "$entered" = alone ] || violated "another owner beside processes of the command: $WHERE"
	wait "$RIVAL" || violated "the next one ended with $?: $WHERE"
	# A holder whose renewer was killed while it waited may have been overtaken: then its command is still to be terminated.
	if [ "$END" = wait_all ] || [[ $STRUCK = @(rlock|both) ]]; then
		touch let-go
	fi
	if [[ $STRUCK != @(rlock|both) ]]; then
		wait_until 10 is_gone "$HOLDER" >/dev/null 2>&1 || violated "rlock does not end: $WHERE"
		wait "$HOLDER" || status=$?
		[ "$status" = "$(expected_status)" ] || violated "ended with $status: $WHERE: $(paste -s -d ' ' said)"
	fi
	must_leave_nothing 15
}

# escapers NUMBER
escapers() {
	choose "$1"
	occupy
	hold
	if [ -n "$WAITED" ]; then
		soon 30 is_in_queue || broke "does not wait ($WHERE)"
	else
		soon 30 is_inside_or_over
	fi
	rival
	"at_$MOMENT"
	# What was killed before it had begun ends nothing; what runs is to end.
	soon 20 is_inside_or_over
	[[ $MOMENT != @(wait|grant) ]] || end_command
	repeated
	judge
}

@test "escapers" {
	begin_scenario 'escapers'
	in_cells "$(scaled 120)" "$WIDTH" escapers
	end_scenario
}
