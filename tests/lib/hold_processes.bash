# The processes of one hold: rlock, its renewer, the command, and processes that try to escape. Sourced after helpers.bash,
# leftovers.bash and watching.bash.
#
#   hold_with_pids NAME [OPTION...]          `rlock run` holds the lock until end_commands; sets PID, RENEWER and COMMAND
#   hold_for_script SCRIPT NAME [OPTION...]  as hold_with_pids, but the command is SCRIPT, run by sh; it must write its pid to "command-pid"
#   find_hold_processes                      sets RENEWER and COMMAND of the rlock PID
#   stop_by_debugger PID [exit]              stops the process by ptrace(2), as if it hung; with "exit" also at its end; sets DEBUGGER
#   hold_is_alive NAME PID COMMAND           whether the lock is held, and rlock and the command run
#   start_successor, successor_ran_alone     another rlock waits for the lock "a"; assert that it got the lock after the first command's end
#   parent_of PID, has_parent PID PARENT     set PARENT to the parent of a process; whether its parent is PARENT
#   escaped_process_runs, no_escaped_process_runs   whether a process of tests/tools/escape runs
#   start_checker NAME...                    starts a waiter whose command checks that no escaped process runs; sets CHECKER
#   checker_found_none                       asserts that the checker has acquired the lock, and that no escaped process ran then
#   clients, has_clients COUNT               print the connections of rlocks to the server; compare their number

# A command for sh: writes its pid to the file "command-pid", and runs until end_commands.
REPORT_PID_AND_RUN='echo $$ >command-pid; exec run_until_ended'
# The same, but only SIGKILL ends it.
IGNORE_TERM="trap '' TERM; $REPORT_PID_AND_RUN"

# hold_with_pids NAME [OPTION...]: standard error goes to the file "stderr". Returns when rlock, renewer and command run.
hold_with_pids() {
	hold_for_script "$REPORT_PID_AND_RUN" "$@"
}

hold_for_script() {
	record_stderr rlock run "${@:3}" "$2" -- sh -c "$1"
	find_hold_processes
}

find_hold_processes() {
	wait_until 10 test -s command-pid
	COMMAND=$(<command-pid)
	wait_until 5 has_renewer "$PID"
	RENEWER=${RENEWERS[0]}
	BACKGROUND+=("$COMMAND" "$RENEWER")
}

stop_by_debugger() {
	local pid=$PID
	[[ $(id -u) = 0 ]] || skip 'only root may debug a renewer'
	in_background ptrace_stop "$@" >held-still 2>denied
	DEBUGGER=$PID PID=$pid
	wait_until 10 eval 'test -s held-still || test -s denied'
	[ ! -s denied ] || skip 'no process may be debugged here'
}

# start_successor: when the command of the hold runs, another rlock begins to wait for the lock "a". Its command writes to
# "acquired" whether the first command could still run: "ended", or "runs: " and the start of its /proc/PID/stat.
start_successor() {
	wait_until 10 test -s command-pid
	# A command that SIGKILL has reached cannot run any more, even if it has got no processor since.
	in_background rlock run -w 60s a -- bash -c "$(declare -f read_stat may_run)"'
		if may_run "$(<command-pid)"; then echo "runs: ${SEEN[*]:0:8}"; else echo ended; fi >acquired'
	SUCCESSOR=$PID
}

# successor_ran_alone: asserts that the successor got the lock, and that the first command had ended before.
successor_ran_alone() {
	ended_with 0 "$SUCCESSOR"
	assert_equal "$(<acquired)" ended
}

hold_is_alive() {
	is_held "$1" && is_running "$2" && is_running "$3"
}

# parent_of PID: sets PARENT; 0 if the process has ended.
parent_of() {
	PARENT=$(($(ps -o ppid= -p "$1")))
}

has_parent() {
	parent_of "$1" && [ "$PARENT" = "$2" ]
}

# ---- what escapes ----

# The kinds of processes that tests/tools/escape can start for this user.
ESCAPERS=(child session bare undumpable hopper)
[ "$(id -u)" != 0 ] || ESCAPERS+=(foreign)

# Each process of `escape ... escaped` holds a flock(2) on the file "escaped" while it runs. A check whether that flock is free
# holds it for a moment, which would disturb another check. So the flock on the file "looking" allows one check at a time.
escaped_process_runs() {
	[ -e escaped ] && ! flock looking flock -n -x escaped true
}

no_escaped_process_runs() {
	! escaped_process_runs
}

# start_checker [OPTION...] NAME: when the waiter has the lock, its command creates the file "early" if an escaped process still
# runs, and in any case the file "entered".
start_checker() {
	local pid=$PID
	in_background rlock run -w 60s "$@" -- sh -c 'flock looking flock -n -x escaped true || touch early; touch entered'
	CHECKER=$PID PID=$pid
}

checker_found_none() {
	ended_with 0 "$CHECKER"
	file_exists entered
	[ ! -e early ] || fail 'another owner acquired the lock beside a process that escaped'
}

# ---- what is on the server ----

# clients: prints "ID NAME" for each connection to the server whose name contains " rlock".
clients() {
	redis client list | sed -nE 's/^id=([0-9]+) .* name=([^ ]*) .*/\1 \2/p' | grep ' rlock' || :
}

has_clients() {
	[ "$(clients | wc -l)" = "$1" ]
}
