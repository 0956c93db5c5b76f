#!/usr/bin/env bats
# bats file_tags=long
# rlock, its renewer or both of them killed or stopped, at any moment: the command stays protected or
# is terminated, and the lock does not stay after it for more than a lease.

load ../lib/usual
load ../lib/holding

teardown() {
	kill -s CONT "$SERVER_PID" 2>/dev/null || :
	common_teardown
}

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

@test "with rlock killed after a SIGTERM that it passed on, the command's leftover processes are stopped before the lock is free" {
	in_background rlock run -t 1s --grace 300ms a -- sh -c '
		trap "touch told; until_let_go; exit 3" TERM
		setsid sh -c "trap \"\" TERM; echo \$\$ >left; exec sleep 60" 3>&- &
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
		for ((i = 0; i < 8; i++)); do
			name=lock$1.$i
			to_seconds delay $((RANDOM * 4 * took / 32768 + 100))
			timeout --foreground -s KILL "$delay" \
				rlock run -t 4s "$name" -- alone "$name" 3>&- &
			rlock run -w 60s -t 4s "$name" -- alone "$name" || echo "$name: $?" >>wrong
			wait
		done
	}
	lanes=()
	for number in 1 2 3 4; do
		lane $number 2>>said &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	wait_until 10 no_keys
	wait_until 10 nothing_runs
	[ ! -e wrong ] || fail "$(cat wrong said)"
	(($(wc -l <ran) >= 32))
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

# ---- stopped instead of killed ----

@test "with rlock stopped the lock is renewed, and free when the command has ended, whose status rlock has when it goes on" {
	hold_for 'echo $$ >command-pid; until_let_go; sleep 60 & echo $! >left; exit 7' a -t 2s
	kill -s STOP "$PID"
	stays 2.5 is_held a
	let_go
	wait_until 5 no_keys
	kill -s CONT "$PID"
	ended_with 7
	said_nothing
	# What the command leaves behind runs on.
	BACKGROUND+=("$(<left)")
	is_running "$(<left)"
	nothing_runs
}

@test "lost while rlock is stopped, and the command ends by 0 at that: 76, and rlock says so" {
	hold_for 'exec 2>&1; trap "exit 0" TERM; echo $$ >command-pid; until_let_go' a -t 3s
	kill -s STOP "$PID"
	redis del a
	wait_until 10 is_gone "$COMMAND"
	kill -s CONT "$PID"
	ended_with 76
	said_once '^rlock: a: lock lost at [0-9T:+-]+: '
	nothing_runs
}

@test "a stopped rlock, or renewer, and a frozen server: the other one stops the command before the lease ends, and says so" {
	local end stopped
	for stopped in PID RENEWER; do
		rm -f family
		hold_for_family a -t 3s
		wait_until 5 is_renewed a 3000
		before_renewal "$PID" knowing_end kill -s STOP "${!stopped}" "$SERVER_PID"
		watch_family 5
		((LAST_SEEN_MS < end)) || fail "seen $((LAST_SEEN_MS - end)) ms after the end of the lease"
		kill -s CONT "$SERVER_PID"
		# The one that was not stopped may have ended at that.
		kill -s CONT "$PID" 2>/dev/null || :
		ended_with 76
		said_once '^rlock: a: lock lost at [0-9T:+-]+: '
		wait_until 5 no_keys
		nothing_runs
	done
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

@test "both stopped for longer than the lease: the command is stopped as soon as they go on" {
	hold_for_family a -t 3s --grace 60s
	kill -s STOP "$PID" "$RENEWER"
	wait_until 15 is_free a
	family_runs
	kill -s CONT "$PID" "$RENEWER"
	# The grace time is longer.
	wait_until 20 family_is_gone
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
