#!/usr/bin/env bats
# The process that a lock without a command belongs to ends while it locks or unlocks: within a second the lock is free, and
# nothing stays locked for longer; a waiter acquires the lock and keeps it; no process and no hold file of rlock's is left.
# Each signal at any other moment: killed.bats.

load chaos

# It is a second on a machine that has time.
LIMIT_MS=3000

# end_caller WAY: the process CALLER, or its group.
end_caller() {
	case $1 in
	group_*) kill -s "${1#group_}" -- "-$CALLER" ;;
	*) kill -s "$1" "$CALLER" ;;
	esac
}

# unlock_races NUMBER: the script unlocks when it is told to, by a process that ends later, and is killed at about that time; now
# and then it is the group that is, unlock and all, or another process unlocks as well.
unlock_races() {
	local kind=${KINDS[$1 % 4]} told ended_us took_ms contender status
	choose KILL TERM INT group_TERM group_INT group_HUP other
	WHERE="$kind, $CHOSEN, $WHERE"
	mkfifo told
	exec {told}<>told
	in_background setsid bash -c "rlock $(verb_without_command "$kind") --pid \$\$ $NAME && : >ready
		read -r word <told
		sh -c 'rlock unlock $NAME 2>stderr; echo \$? >>statuses'"
	CALLER=$PID
	wait_until 10 file_exists ready || return
	# Inside long enough for a release that is not the contender's to be noticed.
	[ "$kind" != read ] || kind='write'
	start_contender contender "$kind" "$LEDGER" '-f 50000' -w 20s
	contender=$PID
	pause_for 0.02
	repeated
	injected
	ended_us=$(now_us)
	echo go >&"$told"
	draw 0 12000
	spin "$DRAWN"
	if [ "$CHOSEN" = other ]; then
		status=0
		rlock unlock --pid "$CALLER" "$NAME" || status=$?
		echo "$status" >>statuses
	else
		end_caller "$CHOSEN"
	fi
	exec {told}>&-
	must_end 0 "$contender" contender
	took_ms=$((($(times enter) - ended_us) / 1000))
	took $took_ms
	((took_ms <= LIMIT_MS)) || violated "free after $took_ms ms"
	! grep -sqvxE '0|1|76' statuses || violated "unlock ended with $(paste -s -d ' ' statuses)"
}

# lock_races NUMBER: the parent of a `rlock lock` that just starts, or waits, is killed, or goes on without looking back. The process
# that took its place must not have the lock: it and all that it started would be sent SIGTERM if that was lost, so it is left out here.
lock_races() {
	local kind=${KINDS[$1 % 4]} lock holder='' end='; read -r word' at_us
	lock="rlock $(verb_without_command "$kind") --on-lost ignore --pid \$\$ $NAME"
	choose KILL TERM HUP group_TERM group_KILL exits kills_itself
	case $CHOSEN in
	exits) end=' & exit' ;;
	kills_itself) end=' & kill -KILL $$' ;;
	# A call that is killed together with its parent may have acquired the lock already: that ends with its lease.
	group_KILL) lock+=' -t 1s' ;;
	esac
	# A waiter that is killed in a fair queue stays in it until another one waits there.
	if ((RANDOM % 4 == 0)) && [ "$CHOSEN" != group_KILL ]; then
		[ "$kind" != read ] || kind='write'
		start_contender holder "$kind" "$LEDGER" until
		holder=$PID
		wait_until 20 entered 1 || return
	fi
	WHERE="$kind, $CHOSEN, ${holder:+waiting, }$WHERE"
	in_background setsid bash -c ": >ready; $lock$end" </dev/null
	CALLER=$PID
	wait_until 20 file_exists ready
	draw 0 8000
	spin "$DRAWN"
	case $CHOSEN in
	exits | kills_itself) wait_until 20 is_gone "$CALLER" ;;
	*) end_caller "$CHOSEN" || : ;;
	esac
	at_us=$(now_us)
	repeated
	injected
	if [ -n "$holder" ]; then
		finish_contender holder
		must_end 0 "$holder" holder
	fi
	# From when nothing of it runs nothing can acquire the lock any more.
	must 'something runs' wait_until 10 no_rlock_runs
	took $((($(now_us) - at_us) / 1000))
	# What calls that were killed all together leave on disk, the next one sweeps out.
	[ "$CHOSEN" != group_KILL ] || rlock renew --pid "$BASHPID" "$NAME" || :
}

@test "callers, unlock races the end" {
	scenario 'callers, unlock races the end' 'from the race to the next one inside' 240 4 unlock_races
}

@test "callers, lock races the end" {
	scenario 'callers, lock races the end' 'from the end until nothing runs' 240 4 lock_races
}
