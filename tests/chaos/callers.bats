#!/usr/bin/env bats
# The process that a lock without a command belongs to ends, in each way that a process can end, wherever it was
# called: within a second the lock is free, and not before; no process and no hold file of rlock's is left.
# `unlock` and `lock` race that end: nothing stays locked for longer, and a waiter acquires the lock and keeps it.

# In single quotes stand whole scripts. chaos.bash has the kinds.
# shellcheck disable=SC2016,SC2153

load chaos

setup() {
	directory_setup
	SHELLS=(bash dash)
	! busybox sh -c : 2>/dev/null || SHELLS+=('busybox sh')
	PLACES=(alone alone run make xargs timeout nohup setsid subshell pipe)
	! sudo -n true 2>/dev/null || PLACES+=(sudo)
}

CALLS=(pid function two subst pipe_left pipe_right)
WAYS=(exit end set_e exec_short exec_long TERM INT HUP QUIT KILL STOP group_TERM group_HUP group_KILL)
# It is a second on a machine that has time.
LIMIT_MS=3000
WIDTH=4

# one_of WORD...
one_of() {
	echo "${*:1 + RANDOM % $#:1}"
}

# Sets MODE, RIVAL (the verb that has to wait, whatever the kind's mode) and how flock(1) calls the mode.
choose() {
	KIND=$1
	VERB=$(verb_without_command "$KIND")
	MODE=$(mode_of "$KIND")
	RIVAL=wlock
	[ "$KIND" != plain ] || RIVAL=run
	[ "$KIND" != fair ] || RIVAL=fair
	MARK=-x
	[ "$MODE" = exclusive ] || MARK=-s
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

# ---- every caller, every end ----

# How the script acquires the lock: a line of it.
call_of() {
	local take="rlock $VERB --pid \$\$ $OPTIONS $NAME"
	case $1 in
	pid) echo "$take || exit 9" ;;
	# The shell that is not $$, by its own number.
	subshell) echo "rlock $VERB --pid \$(exec sh -c 'echo \$PPID') $OPTIONS $NAME || exit 9" ;;
	function) echo "take() { $take; }; take || exit 9" ;;
	two) echo "$take && rlock $VERB --pid \$\$ $NAME.two || exit 9" ;;
	subst) echo "x=\$(cd /; $take; :)" ;;
	pipe_left) echo "$take | cat" ;;
	pipe_right) echo "echo x | $take" ;;
	esac
}

# How the script ends, when it is told to.
end_of() {
	case $1 in
	exit) echo 'exit 3' ;;
	set_e) echo 'set -e; false; touch went-on' ;;
	exec_short) echo 'exec true' ;;
	exec_long) echo 'touch long; exec sleep 60' ;;
	*) echo : ;;
	esac
}

# The script: it holds a mark for as long as the process lives that the lock is for, says which one that is, and waits to
# be told. Within a pipe that is the shell above: of two that are killed at once either may end first.
write_script() {
	local open='exec 9>>"$LEDGER.mark"' above='' leave=''
	if [ "$PLACE" = pipe ]; then
		above=$open open='' leave='exec 9>&-'
	fi
	cat <<-END >body
		$(call_of "$CALL")
		$open
		flock -n $MARK 9 || exit 8
		$leave
		sh -c 'echo \$PPID' 9>&- >whose
		: >ready
		read -r word <told
		$(end_of "$WAY")
	END
	case $PLACE in
	subshell) printf '(\n%s\n)\n:\n' "$(cat body)" ;;
	pipe) printf '%s\necho x | {\n%s\n}\n:\n' "$above" "$(cat body)" ;;
	*) cat body ;;
	esac >script
	printf 'all:\n\t@%s ./script\n' "$SHELL_NAME" >Makefile
}

# What starts the script: the words are in CALLER. $SHELL_NAME may be two words.
# shellcheck disable=SC2206
caller_of() {
	local script=($SHELL_NAME ./script)
	CALLER=("${script[@]}")
	case $1 in
	run) CALLER=(rlock run "$NAME.outer" -- "${script[@]}") ;;
	make) CALLER=(make -s) ;;
	xargs) CALLER=(xargs -a names "${script[@]}") ;;
	timeout) CALLER=(timeout 60 "${script[@]}") ;;
	nohup) CALLER=(nohup "${script[@]}") ;;
	setsid) CALLER=(sh -c 'setsid "$@"; :' sh "${script[@]}") ;;
	sudo) CALLER=(sudo -n --preserve-env env PATH="$PATH" "${script[@]}") ;;
	esac
}

# strike PID SIGNAL: the process, and with a way that says so its group. Sets ENDED_MS.
strike() {
	ENDED_MS=$(boottime_ms)
	case $WAY in
	group_*) kill -s "$2" -- "-$CALLER_PID" 2>/dev/null || : ;;
	esac
	# A group that the place has left is not met.
	kill -s "$2" "$1" 2>/dev/null || :
}

# end_caller PID: in the way that was drawn. Sets ENDED_MS, when it was told to.
end_caller() {
	local signal=${WAY#group_}
	case $WAY in
	exit | end | set_e | exec_short)
		ENDED_MS=$(boottime_ms)
		echo go >&"$TOLD"
		return
		;;
	exec_long)
		echo go >&"$TOLD"
		wait_until 20 file_exists long
		signal=TERM
		;;
	STOP)
		kill -s STOP "$1"
		let_pass 1.3
		signal=KILL
		;;
	QUIT | HUP | group_HUP)
		# Some shells ignore the one, nohup ignores the other.
		strike "$1" "$signal"
		let_pass 0.05
		is_running "$1" || return 0
		signal=KILL
		;;
	esac
	must "not held before the end ($WHERE)" is_held "$NAME"
	strike "$1" "$signal"
}

# caller_ends NUMBER KIND
caller_ends() {
	choose "$2"
	PLACE=${PLACES[$1 % ${#PLACES[@]}]}
	WAY=$(one_of "${WAYS[@]}")
	CALL=$(one_of "${CALLS[@]}")
	SHELL_NAME=${SHELLS[RANDOM % ${#SHELLS[@]}]}
	# Of these $$ is another process; and they are to go on after the lock.
	case $PLACE in
	subshell) CALL=subshell ;;
	pipe) CALL=pid ;;
	esac
	OPTIONS=
	[ "$WAY" != STOP ] || OPTIONS='-t 1s'
	WHERE="$SHELL_NAME, $PLACE, $CALL, $WAY, $WHERE"
	echo "$NAME" >names
	mkfifo told
	exec {TOLD}<>told
	write_script
	caller_of "$PLACE"
	in_background setsid "${CALLER[@]}" </dev/null
	CALLER_PID=$PID
	if ! wait_until 10 file_exists ready; then
		violated "the lock was not acquired ($WHERE)"
		return
	fi
	must "not held ($WHERE)" is_held "$NAME"
	start_rival
	let_pass "0.0$((RANDOM % 10))"
	end_caller "$(cat whose)"
	repeated
	injected
	exec {TOLD}>&-
	wait_until 10 is_gone "$(cat whose)" || violated "the caller lives on ($WHERE)"
	free_since "$ENDED_MS"
	! [ -e went-on ] || broke 'set -e did nothing'
}

@test "callers, end" {
	local kind
	for kind in "${KINDS[@]}"; do
		begin_scenario "callers, end: $kind"
		in_cells "$(scaled 48)" "$WIDTH" caller_ends "$kind"
		end_scenario 'from the end to the next one inside'
	done
}

# ---- races ----

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
