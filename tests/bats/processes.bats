#!/usr/bin/env bats
# bats file_tags=long
# rlock, its renewer or both of them killed or stopped, at any moment: the command stays protected or
# is terminated, and the lock does not stay after it for more than a lease.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { common_teardown; }

# hold_for_family NAME [OPTION...]: as hold_with_family; sets RENEWER, too.
hold_for_family() {
	hold_with_family "$@"
	wait_until 5 has_renewer "$PID"
	RENEWER=$(renewer_of "$PID")
	BACKGROUND+=("$RENEWER")
	[ -n "$RENEWER" ]
}

# ---- rlock killed ----

@test "with rlock killed the lock is held and renewed until the command has ended" {
	hold_and_know a -t 3s
	kill -s KILL "$PID"
	stays 4 is_held a
	is_running "$COMMAND"
	let_go
	wait_until 5 no_keys
	wait_until 5 is_gone "$COMMAND"
	wait_until 5 nothing_runs
}

@test "with rlock killed no other gets the lock before the command has ended" {
	hold_and_know a -t 3s
	kill -s KILL "$PID"
	run -75 rlock run -w 3.5s a -- true
	in_background rlock run a -- touch second
	let_go
	wait_until 5 file_exists second
	is_gone "$COMMAND"
}

@test "with rlock killed the lock is free soon after the command's end, however long the lease" {
	hold_and_know a
	kill -s KILL "$PID"
	wait_until 5 is_gone "$PID"
	is_held a
	kill -s KILL "$COMMAND"
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "with rlock killed after a SIGTERM that it passed on, the command's leftover processes are stopped before the lock is free" {
	in_background rlock run -t 1s --grace 300ms a -- sh -c '
		setsid sh -c "trap \"\" TERM; echo \$\$ >left; exec sleep 60" 3>&- &
		trap "touch told; until_let_go; exit 3" TERM
		until_let_go & wait'
	wait_until 5 has_lines left 1
	BACKGROUND+=("$(cat left)")
	kill -s TERM "$PID"
	wait_until 5 file_exists told
	kill -s KILL "$PID"
	let_go
	wait_until 5 no_keys
	is_gone "$(cat left)"
	wait_until 5 nothing_runs
}

@test "with rlock killed a fixed lease still ends the command in time" {
	hold_and_know a -l 4s
	kill -s KILL "$PID"
	end=$(lease_end_ms a)
	wait_closely 20 is_gone "$COMMAND"
	(($(now_ms) < end))
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "with rlock killed --max-run still ends the command" {
	hold_and_know a --max-run 5s
	kill -s KILL "$PID"
	wait_until 8 is_gone "$COMMAND"
	wait_until 5 no_keys
}

@test "with --kill-child the command's processes die when rlock is killed, and the lock is free" {
	hold_for_family a --kill-child
	kill -s KILL "$PID"
	wait_until 5 family_is_gone
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "with --kill-child the lock is not free before the command's processes are dead" {
	hold_for_family a --kill-child
	kill -s KILL "$PID"
	wait_closely 20 is_free a
	family_is_gone
}

# ---- the renewer signalled; what follows when it is killed is in taking_over.bats ----

@test "SIGTERM, SIGINT and SIGHUP sent to a renewer do not end it" {
	hold_and_know a -t 3s
	for signal in TERM INT HUP QUIT USR1 USR2 ALRM PIPE; do
		kill -s "$signal" "$RENEWER"
	done
	stays 3.5 is_held a
	[ "$(renewer_of "$PID")" = "$RENEWER" ]
	let_go
	ended_with 0
	no_keys
}

# ---- both killed ----

@test "with rlock and its renewer killed the lock is free after a lease, and nothing of rlock's runs" {
	hold_and_know a -t 1s
	kill -s KILL "$PID" "$RENEWER"
	wait_until 5 nothing_runs
	is_free_after_lease a 1000
	is_running "$COMMAND"
}

@test "rlock killed at any moment: never two holders, and after a lease nothing is left" {
	start=${EPOCHREALTIME/./}
	run -0 rlock run measured -- true
	took=$((${EPOCHREALTIME/./} - start))
	lane() {
		local i name delay
		for ((i = 0; i < 15; i++)); do
			name=lock$1.$i
			to_seconds delay $((RANDOM * 4 * took / 32768 + 100))
			timeout --foreground -s KILL "$delay" \
				rlock run -t 4s "$name" -- alone "$name" 3>&- &
			rlock run -w 60s -t 4s "$name" -- alone "$name" || echo "$name: $?" >>wrong
			wait
		done
	}
	lanes=()
	for number in 1 2 3 4 5 6 7 8; do
		lane $number 2>>said &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	wait_until 10 no_keys
	wait_until 10 nothing_runs
	[ ! -e wrong ] || fail "$(cat wrong said)"
	(($(wc -l <ran) >= 120))
}

@test "rlock killed at any moment, with --kill-child: the command dies with it, and nothing is left" {
	start=${EPOCHREALTIME/./}
	run -0 rlock run measured -- true
	took=$((${EPOCHREALTIME/./} - start))
	for ((i = 0; i < 40; i++)); do
		to_seconds delay $((RANDOM * 2 * took / 32768 + 100))
		timeout --foreground -s KILL "$delay" rlock run --kill-child -t 1s "lock$i" -- sleep 60 3>&- || :
	done
	wait_until 5 nothing_runs
	run -0 processes_of_test
	refute_output --partial sleep
	wait_until 2 no_keys
}

# ---- one in another ----

@test "a lost lock stops an rlock inside, its command, and frees its lock" {
	in_background rlock run -t 3s a -- rlock run b -- family
	wait_until 5 has_lines family "$FAMILY_SIZE"
	mapfile -t FAMILY < <(cut -d ' ' -f 2 family)
	BACKGROUND+=("${FAMILY[@]}")
	redis del a
	wait_until 8 family_is_gone
	ended_with 76
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "SIGTERM sent to the outer of two rlocks ends all, and frees both locks" {
	in_background rlock run a -- rlock run --grace 100ms b -- family
	wait_until 5 has_lines family "$FAMILY_SIZE"
	mapfile -t FAMILY < <(cut -d ' ' -f 2 family)
	BACKGROUND+=("${FAMILY[@]}")
	kill -s TERM "$PID"
	ended_with 143
	family_is_gone
	no_keys
	nothing_runs
}

@test "with the inner of two rlocks killed its lock is kept until its command has ended" {
	in_background rlock run a -- sh -c 'rlock run -t 1s b -- until_let_go & echo $! >inner; wait; until_let_go'
	wait_until 5 is_held b
	wait_until 5 test -s inner
	wait_until 5 has_command "$(cat inner)"
	kill -s KILL "$(cat inner)"
	stays 1.5 is_held b
	let_go
	ended_with 0
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

# ---- stopped instead of killed ----

@test "with rlock stopped the lock is renewed, and free once the command and rlock have ended" {
	hold_and_know a -t 3s
	kill -s STOP "$PID"
	stays 3.5 is_held a
	let_go
	kill -s CONT "$PID"
	ended_with 0
	no_keys
}

@test "a command that ended while rlock was stopped: its status, however late rlock goes on" {
	in_background sh -c 'exec rlock run a -- sh -c "until_let_go; exit 7" 2>said'
	wait_until 5 has_command "$PID"
	kill -s STOP "$PID"
	let_go
	wait_until 5 no_keys
	kill -s CONT "$PID"
	ended_with 7
	said_nothing
	nothing_runs
}

@test "what a command leaves behind runs on, however long rlock was stopped when it ended" {
	in_background sh -c 'exec rlock run a -- sh -c "until_let_go & echo \$! >left; comes_true test -e stopped" 2>said'
	wait_until 5 test -s left
	kill -s STOP "$PID"
	touch stopped
	wait_until 5 no_keys
	kill -s CONT "$PID"
	ended_with 0
	said_nothing
	is_running "$(<left)"
	let_go
	wait_until 3 is_gone "$(<left)"
	nothing_runs
}

# hold_stopped PROCESS OPTION... -- COMMAND...: rlock is stopped; or its renewer is, which has looked at the time and is reading its
# signals. The command makes the file "begun".
hold_stopped() {
	case $1 in
	rlock)
		listen_to rlock run "${@:2}"
		wait_until 5 file_exists begun
		wait_until 5 has_renewer "$PID"
		kill -s STOP "$PID"
		;;
	renewer)
		# SIGWINCH is passed on by its first kill().
		listen_to refuse stopped rlock-renewer kill STOP 1 rlock run "${@:2}"
		wait_until 5 file_exists begun
		kill -s WINCH "$PID"
		wait_until 5 is_stopped "$(renewer_of "$PID")"
		;;
	esac
}

# goes_on PROCESS LEFT: rlock does, though a process of its command still runs. A renewer is not waited for.
goes_on() {
	[ "$1" = rlock ] || return 0
	is_running "$2"
	kill -s CONT "$PID"
}

@test "lost while rlock or its renewer is stopped: rlock says so, and all of the command's processes are terminated" {
	needs_refuse
	local process
	for process in rlock renewer; do
		rm -f begun family
		hold_stopped "$process" -t 6s --grace 5s a -- sh -c 'touch begun; exec family'
		wait_for_family
		redis del a
		wait_until 10 is_gone "$(family_member leader)"
		goes_on "$process" "$(family_member stubborn)"
		ended_with 76
		said_once '^rlock: a: lock lost at [0-9T:+-]+: '
		family_is_gone
		nothing_runs
	done
}

@test "lost while rlock or its renewer is stopped, and the command ends by 0 at that: 76, and rlock says so" {
	needs_refuse
	local process child
	for process in rlock renewer; do
		rm -f begun
		hold_stopped "$process" -t 3s a -- sh -c 'exec 2>&1; trap "exit 0" TERM; touch begun; until_let_go'
		child=$(command_of "$PID")
		redis del a
		wait_until 5 is_gone "$child"
		goes_on "$process" "$PID"
		ended_with 76
		said_once '^rlock: a: lock lost at [0-9T:+-]+: '
		nothing_runs
	done
}

@test "--max-run is over while rlock or its renewer is stopped: rlock says so, and all is terminated" {
	needs_refuse
	local process
	for process in rlock renewer; do
		rm -f begun family
		hold_stopped "$process" --max-run 3s --grace 5s a -- sh -c 'touch begun; exec family'
		wait_for_family
		wait_until 5 is_gone "$(family_member leader)"
		goes_on "$process" "$(family_member stubborn)"
		ended_with 124
		said_once '^rlock: a: the command ran for 3s, the limit of --max-run: terminating it'
		family_is_gone
		no_keys
		nothing_runs
	done
}

@test "a stopped rlock and a frozen server: the renewer stops the command before the lease ends" {
	hold_for_family a -t 3s
	wait_until 5 is_renewed a 3000
	before_renewal "$PID" knowing_end kill -s STOP "$PID" "$SERVER_PID"
	watch_family 5
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	kill -s CONT "$SERVER_PID"
	kill -s CONT "$PID"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
	wait_until 3 no_keys
	nothing_runs
}

@test "a renewer that stays stopped is killed, and rlock keeps the lock for its command" {
	hold_and_know a -t 3s
	kill -s STOP "$RENEWER"
	stays 4 is_held a
	is_gone "$RENEWER"
	is_running "$COMMAND"
	let_go
	ended_with 0
	said_nothing
	no_keys
	nothing_runs
}

@test "a stopped renewer and a frozen server: rlock terminates the command before the lease ends, and says so" {
	hold_for_family a -t 3s
	wait_until 5 is_renewed a 3000
	knowing_end kill -s STOP "$RENEWER" "$SERVER_PID"
	watch_family 5
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	kill -s CONT "$SERVER_PID"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
	wait_until 3 no_keys
	nothing_runs
}

@test "a renewer that was stopped for less than a third of the lease changes nothing" {
	hold_and_know a -t 2s
	kill -s STOP "$RENEWER"
	let_pass 0.6
	kill -s CONT "$RENEWER"
	wait_until 5 is_renewed a 2000
	let_go
	ended_with 0
	no_keys
}

@test "both stopped for longer than the lease: the command is stopped as soon as they go on" {
	hold_for_family a -t 3s
	kill -s STOP "$PID" "$RENEWER"
	wait_until 6 is_free a
	family_runs
	kill -s CONT "$PID" "$RENEWER"
	# The grace time is longer.
	within 3 family_is_gone
	ended_with 76
	said_once '^rlock: a: lock lost '
	no_keys
	nothing_runs
}

@test "both stopped for longer than the lease, another one has the lock: it keeps it" {
	hold_and_know a -t 1s
	holder=$PID
	kill -s STOP "$holder" "$RENEWER"
	in_background rlock run -t 1s a -- sh -c 'touch second; until_let_go'
	wait_until 3 file_exists second
	kill -s CONT "$holder" "$RENEWER"
	ended_with 76 "$holder"
	is_gone "$COMMAND"
	[ "$(hold_count a)" = 1 ]
	wait_until 5 is_renewed a 1000
	let_go
	ended_with 0
}

@test "one rlock's renewer and children do not disturb another one's" {
	hold_and_know a -t 3s
	first=$PID first_renewer=$RENEWER
	hold_and_know b -t 3s
	kill -s TERM "$PID"
	wait_until 5 is_free b
	is_running "$first"
	[ "$(renewer_of "$first")" = "$first_renewer" ]
	is_held a
	let_go
	ended_with 0 "$first"
	no_keys
}
