#!/usr/bin/env bats
# rlock inherits unusual things from its parent: closed, full or broken streams, and signals that are ignored or blocked. Or a
# process that rlock knows has ended, and its pid now belongs to another process. uses.bash says what must be true afterwards.

load chaos
load uses

CALL_LIMIT_MS=30000
USES=(free busy stop lock unlock renew)
CLOSED=('<&-' '>&-' '2>&-' '<&- >&-' '<&- 2>&-' '>&- 2>&-' '<&- >&- 2>&-' '>/dev/full' '2>/dev/full'
	'>/dev/full 2>/dev/full' '</dev/full >&- 2>/dev/full' '> >(:)' '2> >(:)')

# kind_of ROUND NUMBER: prints "plain" in the first round, and each kind in turn in later rounds.
kind_of() {
	(($1 == 0)) && echo plain || echo "${KINDS[($1 + $2) % 4]}"
}

# spoilt_streams NUMBER: does each use with unusable streams. OUT gives COMMAND working streams.
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
		# Only a use that prints a token or a TTL may fail with 71. The other uses must succeed, since they need no
		# stream.
		try "$use" "$([[ $use-$KIND != @(renew-*|lock-plain|lock-fair) ]] || echo 71)" || return 0
	done
}

SIGNALS=(CHLD PIPE TERM INT HUP QUIT USR1 ALRM TSTP)

# spoilt_signals NUMBER: does each use with one signal ignored or blocked. In every third cell the call has a session of its own.
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

# reused_pid NUMBER: runs tests/bin/reuses_pid in a pid namespace of its own. A process there ends, and another one gets its pid.
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
	# Some cases kill both rlock and its renewer, so their lock stays: delete it.
	redis del "$NAME" >/dev/null
}

@test "surroundings: locks can be used with closed, full or broken streams" {
	scenario 'surroundings, streams closed, full or broken' 'for a call' $((${#CLOSED[@]} * 4)) 6 spoilt_streams
}

@test "surroundings: locks can be used with ignored or blocked signals" {
	scenario 'surroundings, signals ignored or blocked' 'for a call' $((${#SIGNALS[@]} * 2 * 2)) 6 spoilt_signals
}

@test "surroundings: rlock does not take a process with a reused pid for one of its own" {
	unshare --fork --pid --mount-proc --kill-child sh -c 'echo 50 >/proc/sys/kernel/ns_last_pid' 2>/dev/null ||
		skip 'pids can not be chosen here'
	needs_refuse
	scenario 'surroundings, reused pids' '' $((${#REUSES[@]} * 8)) 6 reused_pid
}
