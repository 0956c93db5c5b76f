# What surroundings*.bats do with each verb, and what has to be true afterwards. Sourced after chaos.bash.
#
# Promised is that each verb ends, by COMMAND's own status or one that says what happened (71, as a rule), with one line; that
# COMMAND is run once at most, and never without the lock; that a lock which is said to be acquired is held; that one which is
# not leaves no key, no process and no file behind; and that a failure can be repeated.
#
# A repetition is one rlock in surroundings of its own. The array IN goes before that rlock alone (refuse, prlimit,
# env), and OUT before its COMMAND, to be as others are again; what is around it (the holder before it, what releases
# after it) is undisturbed. Each use_X does something with a lock of that kind, and judge_X says whether
# what came of it is allowed; the statuses of a failure that are, are given to judge.

# USES is for the scenarios.
# shellcheck disable=SC2034

# COMMAND's own status, which rlock has none like.
OWN_STATUS=7
# Nothing takes longer: then it hangs.
HANG_S=30
IN=() OUT=()

USES=(use_free use_busy use_stop use_lock use_unlock use_renew)

# kind_of ROUND INDEX: plain in the first round, all in turn in the others.
kind_of() {
	echo "${KINDS[$1 == 0 ? 0 : ($1 + $2) % ${#KINDS[@]}]}"
}

# ---- what happened ----

# attempt COMMAND [ARG...]: sets STATUS; the lines that it said on standard error are in SAID.
attempt() {
	STATUS=0
	timeout --foreground -s KILL "$HANG_S" "$@" 2>said 3>&- || STATUS=$?
	mapfile -t SAID <said
}

# count_events: ENTERED, LEFT and BARE, by the ledger.
count_events() {
	local event
	ENTERED=0 LEFT=0 BARE=0
	[ ! -e "$LEDGER" ] || while read -r _ event _; do
		case $event in
		enter) ENTERED=$((ENTERED + 1)) ;;
		leave) LEFT=$((LEFT + 1)) ;;
		bare) BARE=$((BARE + 1)) ;;
		overlap) wrong 'two are inside' ;;
		esac
	done <"$LEDGER"
}

# wrong TEXT: a violation, told with what the repetition was. WHAT is set by the scenario.
wrong() {
	violated "$WHAT: $1: status $STATUS, said: ${SAID[*]:-nothing}"
	HAS_GONE_WRONG=yes
}

# The dynamic linker had not the means to start rlock, or what goes before it or COMMAND: nothing was put to the test.
was_not_started() {
	case ${SAID[*]:-} in
	*'error while loading shared libraries'* | *'cannot allocate TLS'* | *'cannot create TLS'*) ;;
	*) return 1 ;;
	esac
}

# is_among STATUS...
is_among() {
	[[ " $* " = *" $STATUS "* ]]
}

said_one_line() {
	[[ ${#SAID[@]} = 1 && ${SAID[0]} == rlock:\ ?* ]] || [ -n "${IS_DEAF:-}" ]
}

# A release that can't be delivered is no more than a warning.
said_it_expires() {
	[[ ${SAID[*]:-} == *'the lock expires with its lease'* ]]
}

# judge JUDGE STATUS...: unless it did not come to that.
judge() {
	if was_not_started; then
		clear_up
		return
	fi
	repeated
	if ((STATUS == 137)); then
		wrong 'it hangs, or was killed'
		clear_up
	else
		"$@"
	fi
}

# ---- what must be true behind it ----

# fails_well STATUS...: a failure is one of these, and one line says why.
fails_well() {
	is_among "$@" || wrong "none of $*"
	said_one_line || wrong 'not one line'
}

# nothing_is_left: no key, no process and no file; but a lock whose release could not be delivered, a lease long.
nothing_is_left() {
	if said_it_expires; then
		[ "$(redis pttl "$NAME")" != -1 ] || wrong 'a key without an expiry is left'
	else
		within_limit 10 name_is_clear || wrong "keys are left: $(keys_of_name)"
	fi
	within_limit 10 nothing_runs || wrong "runs on: $(ours_by_name)"
	[ -z "$(files_left)" ] || wrong "left on disk: $(files_left)"
	if [ -n "${HAS_GONE_WRONG:-}" ] || said_it_expires; then
		clear_up
	fi
	rm -f "$LEDGER" "$LEDGER.mark" said refused
}

# As wait_until, that says nothing.
within_limit() {
	"${@:2}" 2>/dev/null || wait_until "$@" 2>/dev/null
}

keys_of_name() {
	redis eval "return table.concat(redis.call('KEYS', '*' .. ARGV[1] .. '*'), ' ')" 0 "$NAME"
}

name_is_clear() {
	[ -z "$(keys_of_name)" ]
}

ours_by_name() {
	local pid
	for pid in $(ours); do
		echo "$pid $(cat "/proc/$pid/comm" 2>/dev/null)"
	done
}

files_left() {
	local file
	for file in "$RLOCK_RUNTIME_DIR"/*; do
		[ ! -e "$file" ] || echo "${file##*/}"
	done
}

# For the next repetition in this cell, when something is left of this one.
clear_up() {
	local pid
	for pid in $(ours); do
		kill -KILL "$pid" 2>/dev/null || :
	done
	redis eval "for _, key in ipairs(redis.call('KEYS', '*' .. ARGV[1] .. '*')) do redis.call('DEL', key) end" \
		0 "$NAME" >/dev/null
	HAS_GONE_WRONG=
	rm -rf "${RLOCK_RUNTIME_DIR:?}"/* "$LEDGER" "$LEDGER.mark" said refused
}

# ---- a command under a lock ----

take_and_look() {
	attempt "${IN[@]}" rlock "$(verb_of "$1")" -w 20s "$NAME" -- "${OUT[@]}" \
		sees_lock "$LEDGER" "$NAME" "$OWN_STATUS"
}

# use_free KIND: the lock is free, and is acquired at once.
use_free() {
	take_and_look "$1"
}

# use_busy KIND: another owner holds the lock, and releases it when this one waits.
use_busy() {
	local holder helper kind=$1
	# A reader waits for a writer only.
	[ "$kind" != read ] || kind='write'
	in_background rlock "$(verb_of "$kind")" "$NAME" -- until_let_go
	holder=$PID
	within_limit 20 is_held "$NAME" || broke 'the lock is not held'
	(
		until is_waited_for || [ -e tried ]; do
			let_pass 0.02
		done
		let_go
	) 3>&- &
	helper=$!
	take_and_look "$1"
	touch tried
	wait "$helper" "$holder" || broke "the holder ended with $?"
	rm -f tried let-go
}

is_waited_for() {
	[ -n "$(redis pubsub channels "*$NAME*")" ]
}

judge_command() {
	count_events
	((ENTERED <= 1)) || wrong "COMMAND was run $ENTERED times"
	((BARE == 0)) || wrong 'COMMAND was run without the lock'
	if ((ENTERED == 0)); then
		fails_well "$@"
	else
		((LEFT == 1 && STATUS == OWN_STATUS)) || wrong "not COMMAND's own status"
		((${#SAID[@]} == 0)) || said_it_expires || wrong 'said something'
	fi
	nothing_is_left
}

# use_stop KIND: a command with processes that are hard to stop has run for too long.
use_stop() {
	attempt "${IN[@]}" rlock "$(verb_of "$1")" --max-run 120ms --grace 120ms "$NAME" -- \
		"${OUT[@]}" overlap "$LEDGER" exclusive -C -u never
}

# After rlock none of them is inside.
judge_stop() {
	count_events
	((ENTERED <= 1)) || wrong "COMMAND was run $ENTERED times"
	[ ! -e "$LEDGER.mark" ] || overlap -g "$LEDGER" 0 >gone || wrong 'some of COMMAND runs on'
	if ((STATUS != 124)); then
		((ENTERED == 0)) || wrong 'COMMAND was not stopped'
		fails_well "$@"
	else
		[[ ${SAID[0]-} == *'terminating it' ]] || [ -n "${IS_DEAF:-}" ] || wrong 'does not say why'
		((${#SAID[@]} <= 1)) || said_it_expires || wrong 'says more than why'
	fi
	nothing_is_left
}

# use_long KIND: the lock is renewed while its command runs.
use_long() {
	attempt "${IN[@]}" rlock "$(verb_of "$1")" -t 2s "$NAME" -- "${OUT[@]}" \
		overlap "$LEDGER" exclusive -f 2600000
}

# The witness ends by 0.
judge_long() {
	local OWN_STATUS=0
	judge_command "$@"
}

# use_orphan KIND: rlock is killed, and its renewer is alone with the command; another rlock waits.
use_orphan() {
	local rlock next_status=0
	in_background "${IN[@]}" rlock "$(verb_of "$1")" -t 3s "$NAME" -- "${OUT[@]}" overlap "$LEDGER" \
		"$(mode_of "$1")" -f 150000
	rlock=$PID
	until entered 1 || is_gone "$rlock"; do
		let_pass 0.01
	done
	kill -KILL "$rlock" 2>/dev/null || :
	STATUS=0
	wait "$rlock" 2>/dev/null || STATUS=$?
	timeout -s KILL "$HANG_S" rlock "$(verb_of "$1")" -w 20s "$NAME" -- overlap "$LEDGER" "$(mode_of "$1")" 2>said 3>&- ||
		next_status=$?
	mapfile -t SAID <said
	((next_status == 0)) || wrong "the next one did not get in: $next_status"
	# The cell itself has killed it.
	((STATUS != 137)) || STATUS=0
}

# By the witness nothing is inside beside the next one, and nothing is but these two.
judge_orphan() {
	count_events
	((ENTERED <= 2)) || wrong "COMMAND was run $((ENTERED - 1)) times"
	nothing_is_left
}

# ---- locks without a command ----

# The process that the locks are for: it hears each SIGTERM.
begin_caller() {
	sleep 300 3>&- &
	CALLER=$!
}

caller_is_well() {
	is_running "$CALLER" && return
	wrong 'the calling process was ended'
	wait "$CALLER" 2>/dev/null || :
	begin_caller
}

lock_for_caller() {
	rlock "$(verb_without_command "$1")" --pid "$CALLER" "$NAME" 3>&- || broke "cannot lock: $?"
}

unlock_for_caller() {
	rlock unlock --pid "$CALLER" "$NAME" >unlocked 2>&1 3>&-
}

# use_lock KIND
use_lock() {
	attempt "${IN[@]}" rlock "$(verb_without_command "$1")" -t "${LOCK_TTL:-30s}" -w 20s --pid "$CALLER" "$NAME"
}

judge_lock() {
	if ((STATUS == 0)); then
		((${#SAID[@]} == 0)) || wrong 'said something'
		is_held "$NAME" || wrong 'not held'
		unlock_for_caller || wrong "unlock ends with $?: $(cat unlocked)"
	else
		fails_well "$@"
	fi
	caller_is_well
	nothing_is_left
}

# use_unlock KIND
use_unlock() {
	lock_for_caller "$1"
	attempt "${IN[@]}" rlock unlock --pid "$CALLER" "$NAME"
}

# One that fails can be repeated.
judge_unlock() {
	if ((STATUS == 0)); then
		((${#SAID[@]} == 0)) || wrong 'said something'
	else
		fails_well "$@"
		unlock_for_caller || wrong "repeated it ends with $?: $(cat unlocked)"
	fi
	caller_is_well
	nothing_is_left
}

# use_renew KIND
use_renew() {
	lock_for_caller "$1"
	attempt "${IN[@]}" rlock renew --pid "$CALLER" "$NAME" >renewed
}

judge_renew() {
	if ((STATUS == 0)); then
		((${#SAID[@]} == 0)) || wrong 'said something'
		[ -n "${IS_DEAF:-}${IS_UNREAD:-}" ] || grep -qE '^[0-9.]+(ms|s)$' renewed || wrong "printed '$(cat renewed)'"
	else
		fails_well "$@"
	fi
	is_held "$NAME" || wrong 'not held any more'
	unlock_for_caller || wrong "unlock ends with $?: $(cat unlocked)"
	caller_is_well
	nothing_is_left
}

# judge_of USE: which judge_X goes with it.
judge_of() {
	case $1 in
	use_free | use_busy) echo judge_command ;;
	*) echo "judge_${1#use_}" ;;
	esac
}

# try USE KIND STATUS...: one repetition.
try() {
	"$1" "$2"
	judge "$(judge_of "$1")" "${@:3}"
}
