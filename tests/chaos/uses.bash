# Use a lock in each of the ways that users do, while one call is disturbed, and check the result. Sourced after chaos.bash by
# network.bats, surroundings.bats and calls.bats.
#
# Promised: each call ends with COMMAND's own status, or with a status and one line that describe what happened. COMMAND is run
# once at most, and never without the lock. No hold counts twice. If a call reports that it has acquired a lock, the lock is held.
# If not, the call leaves no key, process or file. A call that failed can be repeated.
#
# In each repetition one call of rlock is disturbed: by the program in the array IN, which starts that rlock, or by the proxy of
# RLOCK_URL. The program in the array OUT undoes the disturbance for COMMAND. No other call is disturbed: neither the holder's
# call before it, nor the release after it.

# shellcheck disable=SC2089,SC2090

# The status with which COMMAND exits. rlock itself never exits with this number.
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

# COMMAND adds a line to the file "ran" with the hold counts that it finds, and its fencing token to the file "tokens". Then
# `overlap` checks that no other command is inside.
COMMAND='
	echo "$LABEL $(ask_redis "$SERVER_SOCKET" eval "$COUNT_HOLDS" 2 "$NAME" "${NAME}b")" >>ran
	echo "${RLOCK_TOKEN-}" >>tokens
	overlap ledger "$MODE" -f "${STAY_US:-0}" && exit '$OWN_STATUS

# begin_uses KIND: prepares a cell. CALLER is the process that locks without a command belong to. A SIGTERM ends it, so check_effect
# notices if rlock sends one.
begin_uses() {
	export MODE LABEL=it NAME COUNT_HOLDS
	KIND=$1 VERB=$(verb_of "$1") LOCK=$(verb_without_command "$1") MODE=$(mode_of "$1")
	DIRECT_URL=unix://$SERVER_SOCKET KEPT='redisson_lock_token:.*'
	in_background sleep 300
	CALLER=$PID
}

# directly COMMAND [ARG...]: runs COMMAND with a connection that no fault disturbs.
directly() {
	RLOCK_URL=$DIRECT_URL timeout 30 "$@"
}

# attempt GOOD SAYS COMMAND [ARG...]: makes the call that is disturbed. must_tell judges it later: without a failure it must end with one of
# the statuses GOOD, and print one line that matches SAYS, or nothing if SAYS is empty.
attempt() {
	GOOD=$1 GOOD_SAYS=$2
	disturb
	call "${IN[@]}" "${@:3}" >answer
	undisturb
}

# disturb, undisturb: begin and end the fault. A test file whose faults do not come from IN defines its own ones. These must leave
# RLOCK_URL unchanged: `unlock` and `renew` find the lock of a process only with the URL with which it was acquired.
disturb() { :; }
undisturb() { :; }

# runs COUNTS OPTION...: runs COMMAND under the lock. The hold counts that COMMAND finds must match the regular expression COUNTS.
runs() {
	COUNTS=$1
	attempt $OWN_STATUS '' rlock "$VERB" -t 3s "$NAME" "${@:2}" -- "${OUT[@]}" sh -c "$COMMAND"
}

# blocks [OPTION...]: starts a holder, so that the disturbed call finds the lock busy. Sets BLOCKER.
blocks() {
	RLOCK_URL=$DIRECT_URL start_contender blocker "$(opposite_kind "$KIND")" ledger until "$@"
	BLOCKER=$PID
	wait_until 20 entered 1
}

# ends_blocking STATUS: ends the holder of `blocks`, which must exit with STATUS.
ends_blocking() {
	finish_contender blocker
	must_end "$1" "$BLOCKER" blocker
}

# waits_or_tried COUNT: whether at least COUNT calls wait, or the disturbed call has ended.
waits_or_tried() {
	[ -e tried ] || listen "$1"
}

# use_busy: the disturbed call waits for the lock, and a later waiter comes while it waits. In a fair queue the disturbed call
# must acquire the lock before the later one. Two readers can be inside together, so the hold counts may be "1 1".
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

# use_orphan: the front is killed while COMMAND runs, so its renewer, which is disturbed, must release the lock. The next call
# must acquire the lock within 20 s.
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

# use NAME: performs the use with this name. Sets STATUS, and the variables that check_effect reads.
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
	# COMMAND runs for longer than the lease of 3 s, so that renewals are disturbed as well.
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
		# A call that failed must succeed when it is repeated. But if only its reply was lost, the lock is already broken,
		# and the second call ends with 1.
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

# check_effect USE: records a violation if the effect of the call does not agree with its STATUS.
check_effect() {
	local ran caller=(--pid "$CALLER") two=("$NAME")
	[[ $1 != owner* ]] || caller=(--owner job)
	[[ $1 != @(*lock|owner) || $1 = *unlock ]] || two+=("${NAME}b")
	case $1 in
	stop) ((STATUS == 124)) || [ ! -s ledger ] || violated 'COMMAND was not stopped' ;;
	force | orphan) ;;
	*unlock)
		# If the unlock failed, a second one must succeed. For --owner that one may also end with 1: the first one has
		# released the lock, and only its reply was lost.
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

# answers USE: prints how many lines this use must print on standard output: a token for each lock, or the TTL.
answers() {
	case $1-$KIND in
	lock-plain | lock-fair | long_lock-*) echo 2 ;;
	*renew-*) echo 1 ;;
	*) echo 0 ;;
	esac
}

# was_not_started: whether the dynamic linker could not start rlock, or a program in IN or OUT. Then nothing was tested.
was_not_started() {
	[[ ${SAID[*]-} =~ (error while loading shared libraries|cannot allocate TLS|cannot create TLS) ]]
}

# try USE STATUS...: makes one repetition. If the disturbed call fails, it must exit with one of the STATUSes. Fails after a
# violation. Then the caller must end the cell, since what is left would disturb the next repetition. REFUSED: the file, if any,
# in which `refuse` lists the system calls that it has refused.
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
		# If the release cannot be delivered, rlock only prints a warning, and exits with COMMAND's status.
		[[ ${SAID[*]-} = *'the lock expires with its lease'* ]] || must_tell "$GOOD" "$GOOD_SAYS" "${*:2}"
		check_effect "$1"
	fi
	# A waiter whose requests were lost stays in the fair queue. The next call must acquire the lock all the same, and remove
	# that waiter from the queue.
	[ "$KIND-${NEXT_SWEEPS-}" != fair-yes ] || nothing_is_on_server || must 'the next one' directly rlock fair -w 10s "$NAME" -- true
	nothing_is_left
	((VIOLATIONS == 0))
}
