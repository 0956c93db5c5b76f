# The processes of a hold: rlock, its renewer, and the command's, wherever they are. Sourced after helpers.bash, leftovers.bash
# and watching.bash.

# A command that says which process it is, by the file "command-pid", and runs until end_commands.
REPORT_PID_AND_RUN='echo $$ >command-pid; exec run_until_ended'

# hold_with_pids NAME [OPTION...]: `rlock run` holds the lock for a command that stays until end_commands; its messages are in the file
# "stderr". Sets PID, RENEWER and COMMAND. Returns when all of them run.
hold_with_pids() {
	hold_for_script "$REPORT_PID_AND_RUN" "$@"
}

# hold_for_script SCRIPT NAME [OPTION...]: the same, for a script of sh that writes its number to the file "command-pid".
hold_for_script() {
	record_stderr rlock run "${@:3}" "$2" -- sh -c "$1"
	find_hold_processes
}

# find_hold_processes: PID is an rlock that holds a lock; sets RENEWER and COMMAND.
find_hold_processes() {
	wait_until 10 test -s command-pid
	COMMAND=$(<command-pid)
	wait_until 5 has_renewer "$PID"
	RENEWER=$(renewer_of "$PID")
	BACKGROUND+=("$COMMAND" "$RENEWER")
}

# hold_is_alive NAME PID COMMAND: the lock is held, rlock and the command run.
hold_is_alive() {
	is_held "$1" && is_running "$2" && is_running "$3"
}

# parent_of PID: sets PARENT, to 0 for one that has gone.
parent_of() {
	PARENT=$(($(ps -o ppid= -p "$1")))
}

# has_parent PID PARENT
has_parent() {
	parent_of "$1" && [ "$PARENT" = "$2" ]
}

# ---- what escapes ----

# The kinds of tests/tools/escape that this user can make.
ESCAPERS=(child session bare undumpable hopper)
[ "$(id -u)" != 0 ] || ESCAPERS+=(foreign)

# Processes that tests/tools/escape has started with the mark "escaped" run; or none does any more. One looks at a time, since
# to look is to take the mark for a moment.
escaped_process_runs() {
	[ -e escaped ] && ! flock looking flock -n -x escaped true
}

no_escaped_process_runs() {
	! escaped_process_runs
}

# When it was acquired, no process that escaped was to run. A waiter for the lock; sets CHECKER. Its command makes the file "early"
# if one runs, and in each case "entered".
start_checker() {
	local pid=$PID
	in_background rlock run -w 60s "$@" -- sh -c 'flock looking flock -n -x escaped true || touch early; touch entered'
	CHECKER=$PID PID=$pid
}

# checker_found_none: since all processes have gone, and not before.
checker_found_none() {
	ended_with 0 "$CHECKER"
	file_exists entered
	[ ! -e early ] || fail 'another owner acquired the lock beside a process that escaped'
}

# ---- what is on the server ----

# clients: "ID NAME" of each client of the server but those that ask now.
clients() {
	redis client list | sed -nE 's/^id=([0-9]+) .* name=([^ ]*) .*/\1 \2/p' | grep ' rlock' || :
}

# has_clients COUNT: so many are rlock's.
has_clients() {
	[ "$(clients | wc -l)" = "$1" ]
}
