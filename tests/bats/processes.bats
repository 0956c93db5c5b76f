#!/usr/bin/env bats
# bats file_tags=long
# The keeper, the renewer or both of them killed or stopped, at any moment: the command stays protected or
# is stopped, and the lock does not stay after it for more than a lease.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

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

# hold_and_know NAME [OPTION...]: as hold_in_background; sets RENEWER and CHILD, too.
hold_and_know() {
	hold_in_background "$@"
	wait_until 5 has_command "$PID"
	CHILD=$(command_of "$PID")
	wait_until 5 has_renewer "$PID"
	RENEWER=$(renewer_of "$PID")
	BACKGROUND+=("$CHILD" "$RENEWER")
	[ -n "$RENEWER" ]
}

has_other_renewer() {
	local renewer
	renewer=$(renewer_of "$1")
	[ -n "$renewer" ] && [ "$renewer" != "$2" ]
}

# ---- the keeper killed ----

@test "with rlock killed the lock is held and renewed until the command has ended" {
	hold_and_know a -t 3s
	kill -s KILL "$PID"
	stays 4 is_held a
	is_running "$CHILD"
	let_go
	wait_until 5 no_keys
	wait_until 5 is_gone "$CHILD"
	wait_until 5 nothing_runs
}

@test "with rlock killed no other gets the lock before the command has ended" {
	hold_and_know a -t 3s
	kill -s KILL "$PID"
	run -75 rlock run -w 3.5s a -- true
	in_background rlock run a -- touch second
	let_go
	wait_until 5 file_exists second
	is_gone "$CHILD"
}

@test "with rlock killed the lock is free soon after the command's end, however long the lease" {
	hold_and_know a
	kill -s KILL "$PID"
	wait_until 5 is_gone "$PID"
	is_held a
	kill -s KILL "$CHILD"
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
	wait_closely 20 is_gone "$CHILD"
	(($(now_ms) < end))
	wait_until 5 no_keys
	wait_until 5 nothing_runs
}

@test "with rlock killed --max-run still ends the command" {
	hold_and_know a --max-run 5s
	kill -s KILL "$PID"
	wait_until 8 is_gone "$CHILD"
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

# ---- the renewer killed ----

@test "a renewer that is killed is replaced, and the lock stays held" {
	hold_and_know a -t 3s
	kill -s KILL "$RENEWER"
	wait_until 5 has_other_renewer "$PID" "$RENEWER"
	stays 4 is_held a
	let_go
	ended_with 0
	no_keys
	nothing_runs
}

@test "a renewer that is killed again and again is replaced each time" {
	# Each is killed as soon as it is there, mostly before it has renewed.
	hold_and_know a -t 6s
	for _ in 1 2 3 4 5 6 7 8; do
		renewer=$(renewer_of "$PID")
		kill -s KILL "$renewer"
		wait_until 5 has_other_renewer "$PID" "$renewer"
		is_held a
	done
	let_go
	ended_with 0
	no_keys
	nothing_runs
}

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
	is_running "$CHILD"
}

@test "with the renewer killed first, and then rlock, the lock is free after a lease" {
	hold_and_know a -t 1s
	kill -s STOP "$PID"
	kill -s KILL "$RENEWER"
	kill -s KILL "$PID"
	wait_until 5 nothing_runs
	is_free_after_lease a 1000
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
	in_background sh -c 'exec rlock run -t 1s a -- sh -c "until_let_go; exit 7" 2>said'
	wait_until 5 has_command "$PID"
	kill -s STOP "$PID"
	let_go
	wait_until 3 no_keys
	kill -s CONT "$PID"
	ended_with 7
	said_nothing
	nothing_runs
}

@test "what a command leaves behind runs on, however long rlock was stopped when it ended" {
	in_background sh -c 'exec rlock run -t 1s a -- sh -c "until_let_go & echo \$! >left; kill -STOP \$PPID" 2>said'
	wait_until 5 test -s left
	wait_until 5 no_keys
	kill -s CONT "$PID"
	ended_with 0
	said_nothing
	is_running "$(<left)"
	let_go
	wait_until 3 is_gone "$(<left)"
	nothing_runs
}

# hold_at_signals OPTION... -- COMMAND...: rlock has looked at the time and its page, is reading its signals, and stays
# there, while its renewer goes on.
hold_at_signals() {
	needs_refuse
	# SIGWINCH is passed on by its first kill().
	in_background sh -c 'exec refuse stopped rlock kill STOP 1 rlock run "$@" 2>said' sh "$@"
	wait_until 5 file_exists begun
	kill -s WINCH "$PID"
	wait_until 5 is_stopped "$PID"
}

@test "lost while rlock reads its signals, and the command ended by that: it says so, and stops what is left" {
	hold_at_signals -t 6s --grace 5s a -- sh -c 'touch begun; exec family'
	wait_for_family
	redis del a
	wait_until 5 is_gone "$(family_member leader)"
	is_running "$(family_member stubborn)"
	kill -s CONT "$PID"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
	family_is_gone
	nothing_runs
}

@test "lost while rlock reads its signals, and the command ends by 0 at that: 76, and it says so" {
	hold_at_signals -t 3s a -- sh -c 'exec 2>&1; trap "exit 0" TERM; touch begun; until_let_go'
	command=$(command_of "$PID")
	redis del a
	wait_until 5 is_gone "$command"
	kill -s CONT "$PID"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
	nothing_runs
}

@test "--max-run is over while rlock reads its signals: it says so, and stops what is left" {
	hold_at_signals --max-run 3s --grace 5s a -- sh -c 'touch begun; exec family'
	wait_for_family
	wait_until 5 is_gone "$(family_member leader)"
	is_running "$(family_member stubborn)"
	kill -s CONT "$PID"
	ended_with 124
	said_once '^rlock: a: the command ran for 3s, the limit of --max-run: terminating it'
	family_is_gone
	no_keys
	nothing_runs
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

@test "a stopped renewer: rlock stops the command before the lease ends, and says so" {
	hold_for_family a -t 1s
	wait_until 5 is_renewed a 1000
	kill -s STOP "$RENEWER"
	end=$(lease_end_ms a)
	watch_family 5
	((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: not renewed for '
	no_keys
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
	is_gone "$CHILD"
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
