#!/usr/bin/env bats
# Surroundings that a parent leaves to rlock: closed, full and broken streams, signals that are ignored or blocked,
# pids that are another process's now. surroundings.bash says what has to be true afterwards.

# What is set here is for surroundings.bash, and what that sets is for here.
# shellcheck disable=SC2034

load chaos
load surroundings

# ---- streams ----

CLOSED=('<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-' '>/dev/full' '2>/dev/full'
	'>/dev/full 2>/dev/full' '</dev/full >&- 2>/dev/full' '> >(:)' '2> >(:)')

# COMMAND has sound ones again.
spoilt_streams() {
	local how=${CLOSED[($1 - 1) % ${#CLOSED[@]}]} use kind=${KINDS[($1 - 1) / ${#CLOSED[@]} % ${#KINDS[@]}]}
	begin_caller
	IN=(bash -c "exec \"\$@\" $how" bash)
	OUT=(sh -c 'exec "$@" </dev/null >/dev/null 2>&1' sh)
	[[ $how != *2\>* ]] || IS_DEAF=yes
	[[ $how != '> >(:)' ]] || IS_UNREAD=yes
	for use in "${USES[@]}"; do
		WHAT="$use, $kind, $how"
		injected
		try "$use" "$kind" 71
		case $use in
		use_renew) ;;
		*) [ "$STATUS" != 71 ] || wrong 'no stream is needed for this' ;;
		esac
	done
	# No process would know the token.
	WHAT="lock --fence, $how"
	attempt "${IN[@]}" rlock lock --fence --pid "$CALLER" "$NAME" >token
	injected
	repeated
	if [ "$STATUS" = 0 ]; then
		[[ $(cat token) =~ ^[0-9]+$ || $how = *\>\(* ]] || wrong 'acquired without a token'
		unlock_for_caller || wrong "unlock ends with $?"
	else
		fails_well 71
	fi
	# The counter stays, as it should.
	redis del "redisson_lock_token:{$NAME}" >/dev/null
	nothing_is_left
}

@test "surroundings, streams closed, full or broken" {
	begin_scenario 'surroundings, streams closed, full or broken'
	in_cells "$(scaled $((${#CLOSED[@]} * 4)))" 6 spoilt_streams
	end_scenario ''
}

# ---- signals ----

SIGNALS=(CHLD PIPE TERM INT HUP QUIT USR1 ALRM TSTP)

spoilt_signals() {
	local signal=${SIGNALS[($1 - 1) / 2 % ${#SIGNALS[@]}]} how=ignore use kind
	[ $(($1 % 2)) = 0 ] || how=block
	kind=$(kind_of $((($1 - 1) / 2 / ${#SIGNALS[@]})) "$1")
	begin_caller
	IN=(env "--$how-signal=$signal")
	[ $(($1 % 3)) != 0 ] || IN=(setsid -w "${IN[@]}")
	for use in "${USES[@]}" use_orphan; do
		WHAT="$use, $kind, ${IN[*]}"
		injected
		try "$use" "$kind"
	done
}

@test "surroundings, signals ignored or blocked" {
	begin_scenario 'surroundings, signals ignored or blocked'
	in_cells "$(scaled $((${#SIGNALS[@]} * 2 * 2)))" 6 spoilt_signals
	end_scenario ''
}

# ---- reused pids ----

REUSES=(caller renewer renewer-of-command command command-kill-child command-at-start command-taken-over rlock rlock-max-run)

reused_pid() {
	local reuse=${REUSES[($1 - 1) % ${#REUSES[@]}]} kind line
	kind=$(kind_of $((($1 - 1) / ${#REUSES[@]})) "$1")
	timeout -s KILL 60 unshare --fork --pid --mount-proc --kill-child \
		reuses_pid "$reuse" "$(verb_of "$kind")" "$NAME" >found 2>said 3>&- || broke "$reuse, $kind: ends with $?"
	repeated
	injected
	while IFS= read -r line; do
		if [[ $line == broken:* ]]; then
			broke "$kind, $line"
		else
			violated "$kind, $line"
		fi
	done <found
	clear_up
}

needs_pids() {
	unshare --fork --pid --mount-proc --kill-child sh -c 'echo 50 >/proc/sys/kernel/ns_last_pid' 2>/dev/null ||
		skip 'pids can not be chosen here'
	needs_refuse
}

@test "surroundings, reused pids" {
	needs_pids
	begin_scenario 'surroundings, reused pids'
	in_cells "$(scaled $((${#REUSES[@]} * 8)))" 6 reused_pid
	end_scenario ''
}
