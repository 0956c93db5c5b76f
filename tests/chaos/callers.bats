#!/usr/bin/env bats
# The process that a lock without a command belongs to ends while it locks or unlocks: within a second the lock is free, and
# nothing stays locked for longer; a waiter acquires the lock and keeps it; no process and no hold file of rlock's is left.
# Each signal at any other moment: killed.bats.

load chaos

# It is a second on a machine that has time.
LIMIT_MS=3000
WIDTH=4

# one_of WORD...
one_of() {
	echo "${*:1 + RANDOM % $#:1}"
}

# Sets VERB, and RIVAL, the verb that has to wait.
choose() {
	KIND=$1
	VERB=$(verb_without_command "$KIND")
	RIVAL=wlock
	[ "$KIND" != plain ] || RIVAL=run
	[ "$KIND" != fair ] || RIVAL=fair
	SEED=$RANDOM
	RANDOM=$SEED
	WHERE="seed $SEED"
}

# Another rlock waits for the lock, and finds out whether it was free before its process had ended. RIVAL_PID.
start_rival() {
	in_background rlock "$RIVAL" -w 20s "$NAME" -- overlap "$LEDGER" exclusive -f "${1:-0}"
	RIVAL_PID=$PID
}

# When the rival went in, by the ledger.
rival_ms() {
	awk '$2 == "enter" { print int($1 / 1000); exit }' "$LEDGER"
}

# free_since MS: the rival came in within a second of that time, alone, and kept what it had; nothing is left.
free_since() {
	local took_ms
	ended_with 0 "$RIVAL_PID" || violated "the rival did not end well ($WHERE)"
	if [ -n "$(rival_ms)" ]; then
		took_ms=$(($(rival_ms) - $1))
		took "$took_ms"
		((took_ms <= LIMIT_MS)) || violated "not free in time ($WHERE, $took_ms ms)"
	fi
	count_overlaps "$LEDGER"
	nothing_is_left
}

nothing_is_left() {
	must "keys are left ($WHERE)" wait_until 10 cell_has_no_keys
	must "processes are left ($WHERE)" wait_until 10 nothing_runs
	must "hold files are left ($WHERE)" wait_until 10 no_hold_files
}

# The script unlocks when it is told to, by a process that ends later, and is killed at about that time; now and
# then it is the group that is, unlock and all, or another process unlocks as well.
unlock_races() {
	local way status allowed='^(0|1|76)$'
	choose "${KINDS[$1 % 4]}"
	way=$(one_of KILL TERM INT group_TERM group_INT group_HUP other)
	WHERE="$KIND, $way, $WHERE"
	mkfifo told
	exec {TOLD}<>told
	in_background setsid bash -c "rlock $VERB --pid \$\$ $NAME && : >ready
		read -r word <told
		sh -c 'rlock unlock $NAME 2>said; echo \$? >status; :'"
	CALLER_PID=$PID
	wait_until 10 file_exists ready
	# Inside long enough for a release that is not the rival's to be noticed.
	start_rival 50000
	let_pass 0.02
	repeated
	ENDED_MS=$(boottime_ms)
	echo go >&"$TOLD"
	spin $((RANDOM % 12000))
	case $way in
	group_*) kill -s "${way#group_}" -- "-$CALLER_PID" ;;
	other)
		status=0
		rlock unlock --pid "$CALLER_PID" "$NAME" 2>said-too || status=$?
		[[ $status =~ $allowed ]] || violated "the other unlock ended with $status ($WHERE)"
		;;
	*) kill -s "$way" "$CALLER_PID" ;;
	esac
	injected
	exec {TOLD}>&-
	free_since "$ENDED_MS"
	[ ! -s status ] || [[ $(cat status) =~ $allowed ]] || violated "unlock ended with $(cat status) ($WHERE)"
}

@test "callers, unlock races the end" {
	begin_scenario 'callers, unlock races the end'
	in_cells "$(scaled 240)" "$WIDTH" unlock_races
	end_scenario 'from the race to the next one inside'
}

# The parent of a `rlock lock` that just starts, or waits, is killed, or goes on without looking back. The process that
# took its place must not have the lock: it and all that it started would be sent SIGTERM if that was lost, so it is left out here.
lock_races() {
	local way lock holder='' at
	choose "${KINDS[$1 % 4]}"
	way=$(one_of KILL TERM HUP group_TERM group_KILL exits kills_itself)
	lock="rlock $VERB --on-lost ignore --pid \$\$"
	# A call that is killed together with its parent may have acquired the lock already: that ends with its lease.
	[ "$way" != group_KILL ] || lock+=' -t 1s'
	lock+=" $NAME"
	if ((RANDOM % 4 == 0)); then
		in_background rlock "$RIVAL" "$NAME" -- until_let_go
		holder=$PID
		wait_until 20 is_held "$NAME"
		# A waiter that is killed in a fair queue stays in it until another one waits there.
		[ "$way" != group_KILL ] || way=KILL
	fi
	WHERE="$KIND, $way, '$lock', ${holder:+waiting, }$WHERE"
	case $way in
	exits) lock+=' & exit' ;;
	kills_itself) lock+=' & kill -KILL $$' ;;
	*) lock+='; read -r word' ;;
	esac
	in_background setsid bash -c ": >ready; $lock" </dev/null
	CALLER_PID=$PID
	wait_until 20 file_exists ready
	spin $((RANDOM % 8000))
	case $way in
	exits | kills_itself) wait_until 20 is_gone "$CALLER_PID" ;;
	group_*) kill -s "${way#group_}" -- "-$CALLER_PID" 2>/dev/null || : ;;
	*) kill -s "$way" "$CALLER_PID" 2>/dev/null || : ;;
	esac
	at=$(now_ms)
	repeated
	injected
	if [ -n "$holder" ]; then
		let_go
		ended_with 0 "$holder" || violated "the holder did not end well ($WHERE)"
	fi
	# From when nothing of it runs nothing can acquire the lock any more.
	must "processes are left ($WHERE)" wait_until 10 nothing_runs
	took $(($(now_ms) - at))
	# What calls that were killed all together leave on disk, the next one sweeps out.
	[ "$way" != group_KILL ] || rlock renew --pid "$BASHPID" "$NAME" 2>/dev/null || :
	nothing_is_left
}

@test "callers, lock races the end" {
	begin_scenario 'callers, lock races the end'
	in_cells "$(scaled 240)" "$WIDTH" lock_races
	end_scenario 'from the end until nothing runs'
}
