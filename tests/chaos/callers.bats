#!/usr/bin/env bats
# The process that a lock without a command belongs to ends while it locks or unlocks. The lock must be free within a second, a waiter must
# acquire it and keep it, and no process and no hold file of rlock may be left. killed.bats sends signals at other moments.

load chaos

# Time within which the waiter must have the lock. The manual promises one second; allow more, since the cells share the
# processors.
LIMIT_MS=3000

# end_caller WAY: sends the signal WAY to the process CALLER. A WAY that begins with group_ signals its process group.
end_caller() {
	case $1 in
	group_*) kill -s "${1#group_}" -- "-$CALLER" ;;
	*) kill -s "$1" "$CALLER" ;;
	esac
}

# unlock_races NUMBER: the script unlocks when it reads a word, and gets a signal within 12 ms after that. In some cells the signal goes to
# its process group, so also to its `rlock unlock`. In others there is no signal, but another process unlocks as well.
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
	# The contender keeps the lock for 50 ms. If an unlock released the contender's lock by mistake, the contender would find
	# it lost, and would not exit with 0.
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

# lock_races NUMBER: the parent of a starting or waiting `rlock lock` is killed, or exits without waiting for it. No other process
# may get the lock. With --on-lost ignore a defect of rlock has no effect outside of the cell: should rlock take the process that
# adopts orphans for its caller, that process gets no SIGTERM.
lock_races() {
	local kind=${KINDS[$1 % 4]} lock holder='' end='; read -r word' at_us
	lock="rlock $(verb_without_command "$kind") --on-lost ignore --pid \$\$ $NAME"
	choose KILL TERM HUP group_TERM group_KILL exits kills_itself
	case $CHOSEN in
	exits) end=' & exit' ;;
	kills_itself) end=' & kill -KILL $$' ;;
	# A call that is killed together with its parent may have acquired the lock already, so nothing releases it. Set a short
	# lease: the lock then expires soon.
	group_KILL) lock+=' -t 1s' ;;
	esac
	# In some cells the call must wait for a holder. But do not kill a group that waits: a killed waiter stays in a fair queue
	# until another call waits there.
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
	# Wait until no process of rlock runs: then none can acquire the lock any more.
	must 'something runs' wait_until 10 no_rlock_runs
	took $((($(now_us) - at_us) / 1000))
	# If all processes of a call were killed, their hold file stays until another call removes it. Make such a call.
	[ "$CHOSEN" != group_KILL ] || rlock renew --pid "$BASHPID" "$NAME" || :
}

@test "callers: the lock is free soon when a script is killed while it unlocks, or another process unlocks as well" {
	scenario 'callers, unlock races the end' 'from the race to the next one inside' 240 4 unlock_races
}

@test "callers: no lock stays held when the parent of a starting or waiting rlock lock ends" {
	scenario 'callers, lock races the end' 'from the end until nothing runs' 240 4 lock_races
}
