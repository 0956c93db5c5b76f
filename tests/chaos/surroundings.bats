#!/usr/bin/env bats
# Surroundings that a parent leaves to rlock: closed, full and broken streams, signals that are ignored or blocked,
# pids that are another process's now. uses.bash says what has to be true afterwards.

load chaos
load uses

CALL_LIMIT_MS=30000
USES=(free busy stop lock unlock renew)
CLOSED=('<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-' '>/dev/full' '2>/dev/full'
	'>/dev/full 2>/dev/full' '</dev/full >&- 2>/dev/full' '> >(:)' '2> >(:)')

# kind_of ROUND NUMBER: plain in the first round, all in turn in the others.
kind_of() {
	(($1 == 0)) && echo plain || echo "${KINDS[($1 + $2) % 4]}"
}

# spoilt_streams NUMBER: COMMAND has sound ones again.
spoilt_streams() {
	local how=${CLOSED[($1 - 1) % ${#CLOSED[@]}]} use
	begin_uses "${KINDS[($1 - 1) / ${#CLOSED[@]} % 4]}"
	WHERE="$how, $WHERE"
	IN=(bash -c "exec \"\$@\" $how" bash)
	OUT=(sh -c 'exec "$@" </dev/null >/dev/null 2>&1' sh)
	[[ $how != *2\>* ]] || IS_DEAF=yes
	[[ $how != '> >(:)' ]] || IS_UNREAD=yes
	for use in "${USES[@]}"; do
		injected
		# For all but these no stream is needed: to print a token, or a TTL.
		try "$use" "$([[ $use-$KIND != @(renew-*|lock-plain|lock-fair) ]] || echo 71)" || return 0
	done
}

SIGNALS=(CHLD PIPE TERM INT HUP QUIT USR1 ALRM TSTP)

# spoilt_signals NUMBER
spoilt_signals() {
	local how=ignore use
	(($1 % 2 == 0)) || how=block
	begin_uses "$(kind_of $((($1 - 1) / 2 / ${#SIGNALS[@]})) "$1")"
	IN=(env "--$how-signal=${SIGNALS[($1 - 1) / 2 % ${#SIGNALS[@]}]}")
	(($1 % 3)) || IN=(setsid -w "${IN[@]}")
	WHERE="${IN[*]}, $WHERE"
	for use in "${USES[@]}" orphan; do
		injected
		try "$use" || return 0
	done
}

REUSES=(caller renewer renewer-of-command command command-kill-child command-at-start command-taken-over rlock rlock-max-run)

reused_pid() {
	local reuse=${REUSES[($1 - 1) % ${#REUSES[@]}]} kind line
	kind=$(kind_of $((($1 - 1) / ${#REUSES[@]})) "$1")
	WHERE="$kind, $WHERE"
	timeout -s KILL 60 unshare --fork --pid --mount-proc --kill-child \
		reuses_pid "$reuse" "$(verb_of "$kind")" "$NAME" >found 2>stderr 3>&- || broke "$reuse ends with $?"
	repeated
	injected
	while IFS= read -r line; do
		if [[ $line = broken:* ]]; then broke "$line"; else violated "$line"; fi
	done <found
	# Of the cases in which rlock and its renewer were killed.
	redis del "$NAME" >/dev/null
}

@test "surroundings, streams closed, full or broken" {
	scenario 'surroundings, streams closed, full or broken' 'for a call' $((${#CLOSED[@]} * 4)) 6 spoilt_streams
}

@test "surroundings, signals ignored or blocked" {
	scenario 'surroundings, signals ignored or blocked' 'for a call' $((${#SIGNALS[@]} * 2 * 2)) 6 spoilt_signals
}

@test "surroundings, reused pids" {
	unshare --fork --pid --mount-proc --kill-child sh -c 'echo 50 >/proc/sys/kernel/ns_last_pid' 2>/dev/null ||
		skip 'pids can not be chosen here'
	needs_refuse
	scenario 'surroundings, reused pids' '' $((${#REUSES[@]} * 8)) 6 reused_pid
}
