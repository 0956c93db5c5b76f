# What network.bats, surroundings.bats and calls.bats do with a lock, and what has to be true afterwards. Sourced after chaos.bash.
#
# Promised: each call ends, by COMMAND's own status or one that says what happened, with one line; COMMAND is run once at most,
# and never without the lock; no hold counts twice; a lock which is said to be acquired is held, and one which is not leaves
# no key, no process and no file behind; and a call that failed can be repeated.
#
# A repetition is one call that is disturbed, by what the array IN puts before that rlock alone, or by what lies behind RLOCK_URL. OUT goes
# before its COMMAND, to be as others are again. What is around it (the holder before it, what releases after it) is undisturbed.

# shellcheck disable=SC2089,SC2090

# COMMAND's own status, which rlock has none like.
OWN_STATUS=7
IN=() OUT=()

# The hold counts of all the cell's locks.
COUNT_HOLDS='
	local counts = {}
	for _, lock in ipairs(KEYS) do
		for _, value in ipairs(redis.call("HVALS", lock)) do
			counts[#counts + 1] = tonumber(value)
		end
	end
	return table.concat(counts, " ")'

# That it runs, and what the hold counts are then, is written down, and the witness looks whether it is alone.
COMMAND='
	echo "$LABEL $(ask_redis "$SERVER_SOCKET" eval "$COUNT_HOLDS" 2 "$NAME" "${NAME}b")" >>ran
	echo "${RLOCK_TOKEN-}" >>tokens
	overlap ledger "$MODE" -f "${STAY_US:-0}" && exit '$OWN_STATUS

# begin_uses KIND: for a cell. CALLER is the process that locks without a command are for: it hears each SIGTERM.
begin_uses() {
	export MODE LABEL=it NAME COUNT_HOLDS
	KIND=$1 VERB=$(verb_of "$1") LOCK=$(verb_without_command "$1") MODE=$(mode_of "$1")
	DIRECT_URL=unix://$SERVER_SOCKET KEPT='redisson_lock_token:.*'
	in_background sleep 300
	CALLER=$PID
}

directly() {
	RLOCK_URL=$DIRECT_URL timeout 30 "$@"
}

# attempt GOOD SAYS COMMAND [ARG...]: when all is well it ends with one of the statuses GOOD, and says a line like SAYS, or nothing.
attempt() {
	GOOD=$1 GOOD_SAYS=$2
	disturb
	call "${IN[@]}" "${@:3}" >answer
	undisturb
}

# For what IN does not do. A lock of a process is known by its URL, too, which is to be the same all the time.
disturb() { :; }
undisturb() { :; }

# runs COUNTS OPTION...: COMMAND is to find these hold counts, a regular expression.
runs() {
	COUNTS=$1
	attempt $OWN_STATUS '' rlock "$VERB" -t 3s "$NAME" "${@:2}" -- "${OUT[@]}" sh -c "$COMMAND"
}

# blocks [OPTION...]: a holder keeps the lock from the call that is disturbed.
blocks() {
	RLOCK_URL=$DIRECT_URL start_contender blocker "$(opposite_kind "$KIND")" ledger until "$@"
	BLOCKER=$PID
	wait_until 20 entered 1
}

ends_blocking() {
	finish_contender blocker
	must_end "$1" "$BLOCKER" blocker
}

# waits_or_tried COUNT: so many wait; or the call that is disturbed has ended.
waits_or_tried() {
	[ -e tried ] || listen "$1"
}

# A later waiter comes when this one waits, and has its turn after it. Two readers are inside together.
use_busy() {
	local helper
	blocks
	(
		wait_until 30 waits_or_tried 1
		LABEL=later directly rlock "$VERB" -t 3s "$NAME" -- sh -c "$COMMAND" &
		wait_until 30 waits_or_tried 2
		finish_contender blocker
		wait $!
		echo $? >later
	) &
	helper=$!
	OWN_MS=1000 runs '1( 1)?'
	touch tried
	wait "$helper"
	ends_blocking 0
	[ "$(<later)" = $OWN_STATUS ] || violated "the later waiter ended with $(<later)"
	[ "$KIND" != fair ] || [ "$STATUS" != $OWN_STATUS ] || [[ $(<ran) = it* ]] || violated 'the waiter lost its position'
}

# rlock is killed, and its renewer is alone with COMMAND; that the next one gets in is what counts.
use_orphan() {
	in_background env STAY_US=150000 "${IN[@]}" rlock "$VERB" -t 3s "$NAME" -- "${OUT[@]}" sh -c "$COMMAND"
	wait_until 30 entered_or_gone "$PID"
	kill -KILL "$PID"
	GOOD=$OWN_STATUS GOOD_SAYS=
	LABEL=later call rlock "$VERB" -w 20s "$NAME" -- sh -c "$COMMAND"
	[ "$(grep -c '^it' ran)" -le 1 ] || violated 'COMMAND was run twice'
}

entered_or_gone() {
	[ -s ledger ] || is_gone "$1"
}

# use NAME: sets STATUS, and what must_be_well looks for.
use() {
	local two=("$NAME" "${NAME}b") fence=(--fence)
	COUNTS=
	[[ $KIND != @(read|write) ]] || fence=()
	case $1 in
	free) runs 1 ;;
	nested) runs 2 -- rlock "$VERB" -t 3s "$NAME" ;;
	names) runs '1 1' "${NAME}b" ;;
	fence) runs 1 "${fence[@]}" ;;
	at_least) OWN_MS=1000 runs 1 --at-least 1s ;;
	# Of a lease that is renewed meanwhile.
	long) STAY_US=3400000 OWN_MS=3400 runs 1 ;;
	stop)
		attempt 124 'terminating it$' rlock "$VERB" --max-run 120ms --grace 120ms "$NAME" -- \
			"${OUT[@]}" overlap ledger exclusive -C -u never
		;;
	no_wait)
		blocks
		attempt 75 '' rlock "$VERB" -n "$NAME" -- sh -c "$COMMAND"
		ends_blocking 0
		;;
	gives_up)
		blocks
		OWN_MS=300 attempt '75 69' . rlock "$VERB" -w 300ms "$NAME" -- sh -c "$COMMAND"
		ends_blocking 0
		;;
	force)
		blocks -t 1s
		attempt 0 'broken' rlock unlock --force "$NAME"
		# An answer that was lost leaves nothing for the second call.
		[ "$STATUS" = 0 ] || directly rlock unlock --force "$NAME" || [ $? = 1 ] || violated 'the second call'
		ends_blocking 76
		;;
	lock | long_lock)
		attempt 0 '' rlock "$LOCK" -t 3s -w 20s "${fence[@]}" --pid "$CALLER" "${two[@]}"
		[ "$1" = lock ] || pause_for 3.4
		;;
	unlock | renew)
		rlock "$LOCK" -t 3s --pid "$CALLER" "$NAME"
		attempt 0 '' rlock "$1" --pid "$CALLER" "$NAME"
		;;
	owner) attempt 0 '' rlock "$LOCK" -l 60s --owner job "${two[@]}" ;;
	owner_unlock | owner_renew)
		rlock "$LOCK" -l 60s --owner job "$NAME"
		[ "$1" = owner_unlock ] && two=(unlock) || two=(renew -l 60s)
		attempt 0 '' rlock "${two[@]}" --owner job "$NAME"
		;;
	*) "use_$1" ;;
	esac
}

# must_be_well USE: what was done, or not, is as STATUS says.
must_be_well() {
	local ran caller=(--pid "$CALLER") two=("$NAME")
	[[ $1 != owner* ]] || caller=(--owner job)
	[[ $1 != @(*lock|owner) || $1 = *unlock ]] || two+=("${NAME}b")
	case $1 in
	stop) ((STATUS == 124)) || [ ! -s ledger ] || violated 'COMMAND was not stopped' ;;
	force | orphan) ;;
	*unlock)
		# One that was carried out though its answer was lost leaves nothing for the second call.
		((STATUS == 0)) || rlock unlock "${caller[@]}" "$NAME" || [ "$1 $?" = 'owner_unlock 1' ] || violated 'the second unlock'
		;;
	*lock | owner | *renew)
		if [[ $1 = *renew || $STATUS = 0 ]]; then
			must 'hold counts' redis_says "${two[1]+1 }1" eval "$COUNT_HOLDS" 2 "$NAME" "${NAME}b"
			must 'unlock' rlock unlock "${caller[@]}" "${two[@]}"
			((STATUS != 0)) || [ "${IS_UNREAD-}" ] || [ "$(grep -cxE '[0-9.hms]+' answer)" = "$(answers "$1")" ] || violated "printed '$(cat answer)'"
		fi
		;;
	*)
		ran=$(grep -c '^it' ran)
		((ran == (STATUS == OWN_STATUS))) || violated "COMMAND was run $ran times"
		! grep -qvxE "(it|later) ($COUNTS)" ran || violated "hold counts: $(sort -u ran | paste -s -d ';')"
		[ "$1 $KIND" != 'fence plain' ] || ! grep -qvxE '[0-9]+' tokens || violated "tokens: $(cat tokens)"
		;;
	esac
	is_running "$CALLER" || violated 'the calling process was ended'
}

# answers USE: how many lines it prints: a token for each lock, or the TTL.
answers() {
	case $1-$KIND in
	lock-plain | lock-fair | long_lock-*) echo 2 ;;
	*renew-*) echo 1 ;;
	*) echo 0 ;;
	esac
}

# The dynamic linker had not the means to start rlock, or what goes before it or COMMAND: nothing was put to the test.
was_not_started() {
	[[ ${SAID[*]-} =~ (error while loading shared libraries|cannot allocate TLS|cannot create TLS) ]]
}

# try USE STATUS...: one repetition; STATUSes are those of a failure that are allowed. Fails after a violation: what is left of that would
# be the next one's. REFUSED is a file that says what was refused.
try() {
	rm -f ledger* leave-* tokens ran later tried
	touch ran tokens
	use "$1"
	[ ! -s "${REFUSED-}" ] || injected
	local WHERE="$1, $KIND, $WHERE"
	[ ! -s "${REFUSED-}" ] || WHERE+=", $(<"$REFUSED")"
	if was_not_started; then
		rlock unlock --pid "$CALLER" "$NAME"
	else
		repeated
		# A release that can't be delivered is no more than a warning.
		[[ ${SAID[*]-} = *'the lock expires with its lease'* ]] || must_tell "$GOOD" "$GOOD_SAYS" "${*:2}"
		must_be_well "$1"
	fi
	# What a waiter has left in a queue whose requests were lost, the next one there takes out of it.
	[ "$KIND-${NEXT_SWEEPS-}" != fair-yes ] || nothing_is_on_server || must 'the next one' directly rlock fair -w 10s "$NAME" -- true
	nothing_is_left
	((VIOLATIONS == 0))
}
