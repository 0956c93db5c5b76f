#!/usr/bin/env bats
# bats file_tags=long
# Locks without a command: a script locks, works, and unlocks; or ends, and the lock is free. The scripts
# here are child processes, run by bash and by dash, and call redis-cli by $REDIS.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() {
	common_setup
	export REDIS="ask_redis $SERVER_SOCKET"
}

teardown() { watchful_teardown; }

# script TEXT [OPTION...]: a script in the background; sets PID. It says by `touch "$READY"` how far it is.
script() {
	export READY=$BATS_TEST_TMPDIR/ready
	rm -f "$READY"
	in_background bash -c "$1" script "${@:2}"
}

# script_that_locks [OPTION...]: has a lock, and then waits to be let go.
script_that_locks() {
	script 'rlock lock --pid $$ "$@" && touch "$READY"; until_let_go; exit 5' "$@"
	wait_until 5 file_exists "$READY"
}

# What PID was called with begins so: a shell's -c is not met.
is_program() {
	name_of "$1" && [ "$NAME_OF_PROCESS" = "$2" ]
}

# In the state file of the only lock: 1 when the renewer has found it lost.
is_marked_lost() {
	grep -qsx "lost $1" "$RLOCK_RUNTIME_DIR"/hold-*
}

# ---- held, and released ----

@test "a lock taken for a script is held until the script unlocks it" {
	for shell in bash dash; do
		run -0 "$shell" -c '
			rlock lock --pid $$ a
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "1
0"
	done
}

@test "acquiring and releasing a lock says nothing" {
	run -0 bash -c 'rlock lock --pid $$ a; rlock unlock a; exit'
	assert_output ''
}

@test "without --pid the lock belongs to the process that called rlock" {
	for shell in bash dash; do
		run -0 "$shell" -c '
			rlock lock a
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "1
0"
	done
}

@test "unlock leaves no key, no process and no file behind" {
	script 'rlock lock --pid $$ a; rlock unlock a; touch "$READY"; until_let_go'
	wait_until 5 file_exists "$READY"
	no_keys
	nothing_runs
	no_state_files
}

@test "a script that is killed with SIGKILL frees its lock within a second" {
	script_that_locks a
	kill -KILL "$PID"
	wait_until 1 is_free a
	wait_until 5 no_keys
	wait_until 5 no_state_files
}

@test "a script that ends without an unlock frees its lock within a second" {
	for shell in bash dash; do
		run -0 "$shell" -c 'rlock lock --pid $$ a; $REDIS exists a'
		assert_output 1
		wait_until 1 is_free a
	done
	wait_until 5 no_state_files
}

@test "a script that goes on as another program keeps its lock" {
	script 'rlock lock --pid $$ a; exec until_let_go'
	wait_until 5 is_held a
	wait_until 5 is_program "$PID" until_let_go
	is_held a
	let_go
	wait_until 1 is_free a
}

@test "what a script started does not keep the lock when the script has ended" {
	run -0 bash -c 'rlock lock --pid $$ a; until_let_go >/dev/null 2>&1 & exit 0'
	wait_until 1 is_free a
}

@test "a lock for a script is renewed for as long as the script runs" {
	script_that_locks -t 1s a
	stays 3.2 is_held a
	is_running "$PID"
}

@test "two scripts that lock the same name take turns" {
	printf 0 >"$BATS_TEST_TMPDIR/number"
	local -a pids=()
	for _ in 1 2 3; do
		in_background dash -c '
			for i in 1 2 3 4 5; do
				rlock lock --pid $$ a || exit
				read -r number <"$1"
				echo $((number + 1)) >"$1"
				rlock unlock a || exit
			done
		' script "$BATS_TEST_TMPDIR/number"
		pids+=("$PID")
	done
	for pid in "${pids[@]}"; do
		ended_with 0 "$pid"
	done
	assert_equal "$(cat "$BATS_TEST_TMPDIR/number")" 15
	no_keys
}

# ---- $( ), pipes, descriptors ----

@test "inside \$( ) lock returns at once, and the script has the lock" {
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			x=$(rlock lock a)
			$REDIS exists a
			rlock unlock a
			x=$(rlock lock --pid $$ a)
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "1
1
0"
	done
}

@test "a subshell that is about to end is not given a lock, but told of --pid" {
	run -64 bash -c 'x=$(rlock lock a && cd /); exit'
	assert_output --partial 'rlock lock --pid $$ a'
	no_keys
}

@test "in \$( ) with several commands the lock is the script's with --pid" {
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			x=$(cd /; rlock lock --pid $$ a; :)
			$REDIS exists a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "1
0"
	done
}

@test "the line that it is told can be pasted, whatever the lock is called" {
	export NAME="my lock; it's"
	run -0 bash -c '
		said=$(rlock lock "$NAME" 2>&1 && cd /)
		eval "${said##*: }" || exit
		$REDIS exists "$NAME"
		rlock unlock "$NAME"
		exit
	'
	assert_output 1
}

@test "a caller that has ended before lock began is given no lock, and no other process is" {
	# A process that took the orphan over would have the lock for as long as it lives, and were it lost, it and all
	# below it would be sent SIGTERM: that much is left out here. An orphan is known by its session.
	setsid -w sh -c 'sh -c "while [ -d /proc/$$ ]; do :; done; exec rlock lock --on-lost ignore a" 2>"$0" & exit 0' \
		"$BATS_TEST_TMPDIR/said" 3>&-
	wait_until 5 grep -q 'the calling process has ended' "$BATS_TEST_TMPDIR/said"
	wait_until 5 nothing_runs
	no_keys
	no_state_files
}

@test "lock in a session of its own is still its caller's" {
	run -0 bash -c 'setsid -w rlock lock a; $REDIS exists a; rlock unlock a; $REDIS exists a'
	assert_output "1
0"
}

@test "a subshell of dash is told so, too" {
	run -64 dash -c 'x=$(rlock lock a && cd /); exit'
	assert_output --partial 'rlock lock --pid $$ a'
	no_keys
}

@test "where \$( ) ends with lock, the lock is either the script's or refused" {
	for shell in bash dash; do
		run "$shell" -c '
			x=$(cd /; rlock lock a) || exit
			[ "$($REDIS exists a)" = 1 ] || exit 9
			rlock unlock a
			exit
		'
		[ "$status" = 0 ] || [ "$status" = 64 ]
		no_keys
	done
}

@test "in a pipeline lock returns, for its renewer keeps none of the caller's descriptors" {
	for shell in bash dash; do
		run -0 timeout 10 "$shell" -c '
			rlock lock --pid $$ a 2>&1 | cat
			rlock lock --pid $$ a 7>&1 8>&1 | cat
			$REDIS hvals a
		'
		assert_output 2
	done
}

@test "a renewer holds on to no directory of the caller's" {
	mkdir "$BATS_TEST_TMPDIR/there"
	script 'cd "$1"; rlock lock --pid $$ a; touch "$READY"; until_let_go' "$BATS_TEST_TMPDIR/there"
	wait_until 5 file_exists "$READY"
	wait_until 5 [ "/proc/$(renewers)/cwd" -ef / ]
}

# ---- unlock ----

@test "the second unlock of one lock says that it is not held" {
	run -1 bash -c 'rlock lock --pid $$ a; rlock unlock a || exit 9; rlock unlock a; exit'
	assert_output --partial 'rlock: a: not held by this process or its ancestors: '
}

@test "unlock of a lock that the caller never acquired gives 1" {
	run -1 rlock unlock a
	assert_output --partial 'rlock: a: not held by this process or its ancestors: '
}

@test "unlock and renew that find no lock say how to name its process or owner, or that sudo hides it" {
	run -1 rlock unlock a
	assert_output --regexp ' not held by this process or its ancestors: .*--pid PID.*--owner ID$'
	run -1 rlock renew --pid $$ a
	assert_output --partial " not held by process $$ or its ancestors: "
	if [ "$(id -u)" = 0 ]; then
		SUDO_USER=joe run -1 rlock unlock a
		assert_output --regexp ' not held by this process or its ancestors: .* joe .*without sudo$'
	fi
}

@test "unlock does not release what another owner holds" {
	held_by_stranger a
	run -1 rlock unlock a
	is_held a
}

@test "unlock does not release another script's lock" {
	script_that_locks a
	run -1 rlock unlock a
	is_held a
}

@test "unlock works from a process below the script" {
	run -0 bash -c 'rlock lock --pid $$ a; dash -c "rlock unlock a; :"; $REDIS exists a'
	assert_output 0
}

@test "unlock works when the renewer was killed" {
	script_that_locks a
	kill -KILL "$(renewers)"
	wait_until 5 nothing_runs
	run -0 rlock unlock --pid "$PID" a
	no_keys
	no_state_files
}

@test "unlock says 76 when the lock had been lost" {
	run -76 bash -c 'rlock lock --pid $$ a; $REDIS del a >/dev/null; rlock unlock a; exit'
	assert_one_line '^rlock: a: .*lost.*$'
	wait_until 5 no_keys
	no_state_files
}

@test "unlock of a lost lock leaves the new holder alone" {
	run -76 bash -c '
		rlock lock --pid $$ a
		$REDIS del a >/dev/null
		$REDIS hset a other:1 1 >/dev/null
		rlock unlock a
		exit
	'
	assert_equal "$(redis hgetall a)" "other:1
1"
}

@test "after an unlock that said 76 there is nothing more to unlock" {
	run -1 bash -c 'rlock lock --pid $$ a; $REDIS del a >/dev/null; rlock unlock a; rlock unlock a; exit'
}

@test "unlock releases the script's lock in the script's own place, as the last command of sh -c" {
	# Some shells run the last command by exec: then the script's process is rlock itself.
	run -0 bash -c 'rlock lock --pid $$ a; exec rlock unlock a'
	assert_output ''
	no_keys
}

@test "renew finds the script's lock in the script's own place" {
	run -0 bash -c 'rlock lock --pid $$ a; exec rlock renew a'
}

@test "unlock when the server can't be reached says 69, and can be tried again" {
	script_that_locks a
	mv "$SERVER_SOCKET" "$SERVER_SOCKET.away"
	run -69 rlock unlock --pid "$PID" a
	mv "$SERVER_SOCKET.away" "$SERVER_SOCKET"
	run -0 rlock unlock --pid "$PID" a
	no_keys
}

@test "unlock while the server hangs says 69, and is no lost lock when it is tried again" {
	script_that_locks a
	kill -STOP "$SERVER_PID"
	run -69 rlock unlock --pid "$PID" a
	kill -CONT "$SERVER_PID"
	run -0 rlock unlock --pid "$PID" a
	no_keys
}

# ---- lost ----

@test "a lost lock ends the script by SIGTERM" {
	script_that_locks -t 1s a
	redis del a >/dev/null
	ended_with 143
}

@test "a lost lock ends all that the script has started in its session, and no daemon of another one" {
	script 'rlock lock --pid $$ -t 3s a
		sh -c "until_let_go & echo \$! >\"$1/child\"; wait" &
		setsid sh -c "until_let_go & echo \$! >\"$1/far-child\"; echo \$\$ >\"$1/far\"; wait" &
		until [ -s "$1/far" ] && [ -s "$1/child" ]; do :; done
		touch "$READY"; wait' "$BATS_TEST_TMPDIR"
	wait_until 10 file_exists "$READY"
	redis del a >/dev/null
	ended_with 143
	wait_until 5 is_gone "$(cat "$BATS_TEST_TMPDIR/child")"
	wait_until 5 nothing_runs
	is_running "$(cat "$BATS_TEST_TMPDIR/far")"
	is_running "$(cat "$BATS_TEST_TMPDIR/far-child")"
}

@test "with --on-lost kill a daemon of another session is not killed" {
	script 'trap "" TERM; rlock lock --pid $$ -t 3s --grace 100ms --on-lost kill a
		setsid until_let_go & echo $! >"$1/far"
		touch "$READY"; until_let_go' "$BATS_TEST_TMPDIR"
	wait_until 10 file_exists "$READY"
	redis del a >/dev/null
	ended_with 137
	wait_until 5 nothing_runs
	is_running "$(cat "$BATS_TEST_TMPDIR/far")"
}

@test "a lock for process 1 is refused, and the line is shown with --on-lost ignore" {
	# Never a real one: were it had, and lost, the machine that plays the tests would be ended.
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/nobody
	run -64 rlock lock --pid 1 -l 20s "my lock"
	assert_one_line "^rlock: my lock: .*: try: rlock lock --on-lost ignore --pid 1 -l 20s 'my lock'\$"
	run -64 rlock wlock --pid 1 --on-lost term b
	assert_one_line '^rlock: b: .*: try: rlock wlock --on-lost ignore --pid 1 b$'
	run -69 rlock lock --on-lost ignore --pid 1 -l 20s "my lock"
	no_state_files
}

@test "a script can clean up when its lock is lost, and learns it from unlock too" {
	script 'trap "rlock unlock a; exit \$?" TERM
		rlock lock --pid $$ -t 1s a; touch "$READY"; until_let_go'
	wait_until 5 file_exists "$READY"
	redis del a >/dev/null
	ended_with 76
	no_state_files
}

@test "with --on-lost ignore the script runs on, and unlock says 76" {
	script 'rlock lock --pid $$ -t 1s --on-lost ignore a; touch "$READY"; until_let_go; rlock unlock a; exit'
	wait_until 5 file_exists "$READY"
	redis del a >/dev/null
	wait_until 5 is_marked_lost 1
	is_running "$PID"
	let_go
	ended_with 76
}

@test "with --on-lost kill a script that ignores SIGTERM is killed" {
	script 'trap "" TERM; rlock lock --pid $$ -t 1s --grace 100ms --on-lost kill a; touch "$READY"
		until_let_go'
	wait_until 5 file_exists "$READY"
	redis del a >/dev/null
	ended_with 137
}

@test "an interactive shell survives the loss of its lock, and learns it from unlock" {
	local typed=$BATS_TEST_TMPDIR/typed said=$BATS_TEST_TMPDIR/said child
	mkfifo "$typed"
	exec 9<>"$typed"
	in_background sh -c 'exec bash --norc --noprofile -i <"$0" >"$1" 2>&1' "$typed" "$said"
	echo 'rlock lock -t 1s a' >&9
	wait_until 5 is_marked_lost 0
	echo 'sleep 60 &' >&9
	wait_until 5 pgrep -P "$PID" -x sleep
	child=$(pgrep -P "$PID" -x sleep)
	redis del a >/dev/null
	wait_until 5 is_marked_lost 1
	# Before the shell was told to end, all that it starts is told, too.
	wait_until 5 is_gone "$child"
	echo 'rlock unlock a; echo "status $?"; exit' >&9
	wait_until 5 is_gone "$PID"
	exec 9>&-
	run -0 cat "$said"
	assert_output --partial 'status 76'
}

# ---- waiting ----

@test "lock waits for its turn" {
	hold_in_background a
	script 'rlock lock --pid $$ a; touch "$READY"; until_let_go'
	wait_until 5 has_waiters a
	run -1 file_exists "$READY"
	redis del a 'rlock_holds:{a}' >/dev/null
	redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
	wait_until 5 file_exists "$READY"
	is_held a
}

@test "a lock that is not acquired leaves no trace" {
	held_by_stranger a
	run -75 rlock lock --pid $$ -n a
	assert_output ''
	run -75 rlock lock --pid $$ -w 50ms a
	nothing_runs
	no_state_files
	assert_equal "$(redis dbsize)" 1
}

@test "the wait ends with the process that it is for, and leaves no trace" {
	held_by_stranger a
	for way in '--pid $$' ''; do
		script "rlock lock $way a; :"
		wait_until 5 has_waiters a
		kill -KILL "$PID"
		wait_until 5 nothing_runs
		no_state_files
		redis del a >/dev/null
		redis publish 'redisson_lock__channel:{a}' 0 >/dev/null
		no_keys
		held_by_stranger a
	done
}

@test "the wait ends when the process given by --pid ends" {
	held_by_stranger a
	in_background until_let_go
	local whose=$PID
	in_background rlock lock --pid "$whose" a
	wait_until 5 has_waiters a
	kill -KILL "$whose"
	ended_with 75
	assert_equal "$(redis dbsize)" 1
}

@test "SIGTERM ends the wait, and rlock ends by it" {
	held_by_stranger a
	in_background rlock lock --pid $$ a
	wait_until 5 has_waiters a
	kill -TERM "$PID"
	ended_with 143
	no_state_files
}

# ---- again, and below ----

@test "a script that locks twice has to unlock twice" {
	for shell in bash dash; do
		run -0 "$shell" -c '
			rlock lock --pid $$ a
			rlock lock --pid $$ a
			$REDIS hvals a
			rlock unlock a
			$REDIS hvals a
			rlock unlock a
			$REDIS exists a
		'
		assert_output "2
1
0"
	done
}

@test "rlock run inside a script that has the lock re-enters it" {
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock run a -- $REDIS hvals a
		$REDIS hvals a
	'
	assert_output "2
1"
}

@test "rlock run in the place of a script that has the lock re-enters it" {
	run -0 timeout 5 bash -c 'rlock lock --pid $$ a; exec rlock run a -- $REDIS hvals a'
	assert_output 2
	wait_until 1 is_free a
}

@test "a child script enters its parent's lock and leaves it again" {
	run -0 bash -c '
		rlock lock --pid $$ a
		dash -c "rlock lock --pid \$\$ a; $REDIS hvals a; rlock unlock a"
		$REDIS hvals a
		rlock unlock a
		$REDIS exists a
	'
	assert_output "2
1
0"
}

@test "a child script that ends releases its own hold, and not its parent's" {
	script 'rlock lock --pid $$ a
		dash -c "rlock lock --pid \$\$ a; $REDIS hvals a >\"\$1\"" child "$1"
		touch "$READY"; until_let_go' "$BATS_TEST_TMPDIR/count"
	wait_until 5 file_exists "$READY"
	assert_equal "$(cat "$BATS_TEST_TMPDIR/count")" 2
	wait_until 1 has_count a 1
	is_running "$PID"
}

@test "two children of a script that has no lock do not share what one of them takes" {
	run -0 bash -c '
		dash -c "rlock lock --pid \$\$ a; touch \"$1/first\"; until_let_go" &
		until [ -e "$1/first" ]; do :; done
		dash -c "rlock lock -n --pid \$\$ a; echo \$?"
		touch "$1/let-go"
		wait
	' script "$BATS_TEST_TMPDIR"
	assert_output 75
}

@test "a lock inside rlock run re-enters it, and is released by unlock" {
	run -0 rlock run a -- bash -c '
		rlock lock --pid $$ a
		$REDIS hvals a
		rlock unlock a
		$REDIS hvals a
	'
	assert_output "2
1"
	no_keys
}

@test "unlock inside rlock run says that the hold is run's" {
	run -1 rlock run a -- rlock unlock a
	assert_one_line '^rlock: a: .*run.*$'
	no_keys
}

@test "unlock inside rlock run does not reach for the hold of a script above it" {
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock run a -- rlock unlock a
		echo "status $?"
		$REDIS hvals a
	'
	assert_line 'status 1'
	assert_line 1
}

# ---- renew ----

@test "renew renews once, and prints what is left" {
	run -0 bash -c 'rlock lock --pid $$ a; $REDIS pexpire a 5000 >/dev/null; rlock renew a; $REDIS pttl a'
	assert_line -n 0 --regexp '^(30s|29\.[0-9]+s)$'
	assert_line -n 1 --regexp '^(2[0-9]{4}|30000)$'
}

@test "renew of a lock that is not held gives 1" {
	held_by_stranger a
	run -1 rlock renew a
	assert_output --partial 'rlock: a: not held by this process or its ancestors: '
}

@test "renew of a lost lock gives 76" {
	run -76 bash -c 'rlock lock --pid $$ a; $REDIS del a >/dev/null; rlock renew a; exit'
	assert_one_line '^rlock: a: .+$'
	# The renewer takes away what is left beside the lock, when it sees its process gone.
	wait_until 1 no_keys
}

@test "renew inside rlock run renews run's hold" {
	run -0 rlock run a -- bash -c '$REDIS pexpire a 5000 >/dev/null; rlock renew a; $REDIS pttl a'
	assert_line -n 0 --regexp '^(30s|29\.[0-9]+s)$'
	assert_line -n 1 --regexp '^(2[0-9]{4}|30000)$'
}

# ---- a fixed lease ----

@test "a lock with a fixed lease is not renewed, and its script gets SIGTERM before it ends" {
	# A trap that runs while bash reads a "<(...)" of its own can't be read.
	script 'exec {nothing}<> <(:); trap ": >\"$1\"" TERM; rlock lock --pid $$ -l 8s a
		until [ -e "$1" ]; do read -r -t 0.01 -u "$nothing"; done; touch "$READY"; until_let_go' \
		"$BATS_TEST_TMPDIR/told"
	wait_until 5 is_held a
	wait_until 12 file_exists "$BATS_TEST_TMPDIR/told"
	is_held a
	ttl_is_below a 2800
	wait_until 5 is_free a
	is_running "$PID"
}

@test "unlock releases a fixed lease before its end" {
	run -0 bash -c 'rlock lock --pid $$ -l 1m a; $REDIS exists a; rlock unlock a; $REDIS exists a'
	assert_output "1
0"
}

@test "a fixed lease that has ended is a lost lock for unlock" {
	script 'rlock lock --pid $$ -l 1s --on-lost ignore a; touch "$READY"; until_let_go; rlock unlock a; exit'
	wait_until 5 file_exists "$READY"
	wait_until 5 is_free a
	is_running "$PID"
	let_go
	ended_with 76
}

@test "renew pushes a fixed lease forward, and the script is left alone for so long" {
	script_that_locks -l 9s a
	local start
	wait_until 9 ttl_is_below a 6000
	start=$(now_ms)
	run -0 rlock renew --pid "$PID" a
	assert_output --regexp '^(9s|8\.[0-9]+s)$'
	ended_with 143
	# Without the renewal it would have been told less than four seconds after it.
	(($(now_ms) - start > 4500))
}

# ---- several names ----

@test "names that are locked together are unlocked together, in any order" {
	run -0 bash -c 'rlock lock --pid $$ a b; $REDIS exists a b; rlock unlock b a; $REDIS exists a b'
	assert_output "2
0"
	no_keys
	wait_until 5 nothing_runs
}

@test "several names are acquired together or not at all" {
	held_by_stranger b
	run -75 rlock lock --pid $$ -n a b
	is_free a
}

@test "unlock of one of two names that were locked together shows the right line" {
	run -1 bash -c 'rlock lock --pid $$ a b; rlock unlock a; status=$?; $REDIS exists a b; exit $status'
	assert_line -n 0 'rlock: a: was locked together with others: try: rlock unlock a b'
	assert_line -n 1 2
}

@test "the right line names the process that --pid named" {
	in_background sleep 300
	rlock lock --pid "$PID" a b
	run -1 rlock unlock --pid "$PID" a
	assert_output "rlock: a: was locked together with others: try: rlock unlock --pid $PID a b"
	run -0 rlock unlock --pid "$PID" a b
}

@test "the right line can be pasted, whatever the locks are called" {
	run -0 bash -c '
		rlock lock --pid $$ "my lock" b
		said=$(rlock unlock b 2>&1)
		eval "${said##*: }" || exit
		$REDIS exists "my lock" b
	'
	assert_output 0
}

@test "unlock of names that were locked one by one does not call them locked together" {
	run bash -c 'rlock lock --pid $$ a; rlock lock --pid $$ b; rlock unlock a b; exit'
	[ "$status" = 0 ] || [ "$status" = 1 ]
	refute_output --partial 'was locked together'
}

@test "a lock of rlock run does not keep unlock from the others that are named with it, in whatever order" {
	for names in 'a b' 'b a'; do
		run -1 rlock run a -- bash -c '
			rlock lock --pid $$ b
			rlock unlock $0
			status=$?
			$REDIS exists b
			exit $status
		' "$names"
		assert_line '0'
		assert_line --regexp "^rlock: a: held by 'rlock run'"
		[ "${#lines[@]}" -eq 2 ]
	done
}

@test "names that were locked one by one are unlocked one by one" {
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock lock --pid $$ b
		rlock unlock a
		$REDIS exists a
		$REDIS exists b
		rlock unlock b
		$REDIS exists b
	'
	assert_output "0
1
0"
}

# ---- another server ----

# second_server [OPTION...]: one more server; sets OTHER, its socket.
second_server() {
	export OTHER=$BATS_TEST_TMPDIR/other.sock
	in_background redis-server --port 0 --unixsocket "$OTHER" --save '' --appendonly no \
		--dir "$BATS_TEST_TMPDIR" --logfile "$BATS_TEST_TMPDIR/other.log" "$@"
	wait_until 10 ask_redis "$OTHER" ping >/dev/null 2>&1
}

@test "unlock without the URL that the lock was taken with names it" {
	second_server
	run -0 bash -c '
		rlock lock --pid $$ -u "unix://$OTHER" a
		said=$(rlock unlock a 2>&1)
		echo "status $?"
		echo "$said"
		ask_redis "$OTHER" exists a
		eval "${said##*: }"
		ask_redis "$OTHER" exists a
	'
	assert_line -n 0 'status 1'
	assert_line -n 1 --regexp "^rlock: a: held on another server: try: rlock unlock [^:]*'unix://${OTHER}[^']*' a\$"
	assert_line -n 2 1
	assert_line -n 3 0
}

@test "the same name on two servers is two locks" {
	second_server
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock lock -n --pid $$ -u "unix://$OTHER" a
		rlock unlock a
		$REDIS exists a
		ask_redis "$OTHER" exists a
		rlock unlock -u "unix://$OTHER" a
		ask_redis "$OTHER" exists a
	'
	assert_output "0
1
0"
}

@test "the same name in two databases is two locks" {
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock lock -n --pid $$ --db 1 a
		rlock unlock a
		$REDIS exists a
		redis-cli -s "$SERVER_SOCKET" -n 1 exists a
		rlock unlock --db 1 a
		redis-cli -s "$SERVER_SOCKET" -n 1 exists a
	'
	assert_output "0
1
0"
}

# ---- whose it is ----

@test "--pid gives the lock to another process, and it goes with that" {
	in_background until_let_go
	run -0 rlock lock --pid "$PID" a
	is_held a
	kill -KILL "$PID"
	wait_until 1 is_free a
}

@test "--pid of a process that does not exist is refused before anything is locked" {
	in_background true
	ended_with 0
	run -64 rlock lock --pid "$PID" a
	assert_one_line "^rlock: .*$PID.*$"
	no_keys
	no_state_files
}

# ---- the runtime directory ----

@test "the runtime directory is made for the user alone" {
	run -0 bash -c 'umask 0; rlock lock --pid $$ a; stat -c %a "$RLOCK_RUNTIME_DIR" "$RLOCK_RUNTIME_DIR"/*'
	assert_output "700
600"
}

@test "a state file holds no password" {
	second_server --requirepass swordfish
	run -0 env REDISCLI_AUTH=swordfish bash -c '
		rlock lock --pid $$ -u "unix://$OTHER" a || exit
		cat "$RLOCK_RUNTIME_DIR"/hold-*
		rlock unlock -u "unix://$OTHER" a
		exit
	'
	assert_line --partial "$OTHER"
	refute_line --partial swordfish
}

@test "the state file of a killed script whose renewer was killed too is swept away" {
	script_that_locks -t 1s a
	kill -KILL "$(renewers)"
	kill -KILL "$PID"
	ended_with 137
	assert_equal "$(state_files)" 1
	run -1 rlock unlock a
	no_state_files
	wait_until 5 is_free a
}

@test "only state files of dead processes are swept away" {
	script_that_locks a
	touch "$RLOCK_RUNTIME_DIR/hold-999999999-1-00000000000000000000000000000000"
	# One that was killed while it wrote.
	touch "$RLOCK_RUNTIME_DIR/new-$(stat -L -c %i /proc/self/ns/pid)-999999999-00000000000000000000000000000000"
	touch "$RLOCK_RUNTIME_DIR/hold-and-other-things"
	run -0 bash -c 'rlock lock --pid $$ b; rlock unlock b; exit'
	run -0 ls "$RLOCK_RUNTIME_DIR"
	assert_line --regexp "^hold-$PID-"
	assert_line hold-and-other-things
	refute_line --partial -999999999-
}

@test "a damaged state file does no harm" {
	run -0 bash -c '
		rlock lock --pid $$ a
		for file in "$RLOCK_RUNTIME_DIR"/hold-*; do
			head -c 20000 /dev/zero | tr "\0" % >"$file"
		done
		rlock unlock a
		echo "status $?"
		rlock lock --pid $$ -n b && $REDIS exists b
	'
	assert_line 'status 1'
	assert_line 1
	wait_until 5 no_keys
}

refuses_runtime_directory() {
	run -71 rlock lock --pid $$ a
	assert_one_line '^rlock: '
	assert_output --partial "${RLOCK_RUNTIME_DIR%/}"
	no_keys
	nothing_runs
}

@test "a runtime directory that others may enter is refused" {
	mkdir -m 755 "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
}

@test "a runtime directory that is another user's is refused" {
	[ "$(id -u)" = 0 ] || skip 'only root can give a directory away'
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	chown 65534 "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
}

@test "a runtime directory that is a symbolic link is refused" {
	mkdir -m 700 "$BATS_TEST_TMPDIR/elsewhere"
	ln -s "$BATS_TEST_TMPDIR/elsewhere" "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
	RLOCK_RUNTIME_DIR=$RLOCK_RUNTIME_DIR/ refuses_runtime_directory
}

@test "a file in the place of the runtime directory is refused" {
	touch "$RLOCK_RUNTIME_DIR"
	refuses_runtime_directory
}

@test "a runtime directory that can't be made is refused" {
	RLOCK_RUNTIME_DIR=$BATS_TEST_TMPDIR/missing/run refuses_runtime_directory
	RLOCK_RUNTIME_DIR=/proc/rlock refuses_runtime_directory
}

@test "with a runtime directory that can't be written to nothing stays locked" {
	mkdir -m 700 "$RLOCK_RUNTIME_DIR"
	if [ "$(id -u)" = 0 ]; then
		unshare -m true 2>/dev/null || skip 'no mount namespaces here'
		run -71 unshare -m sh -c '
			mount --bind "$RLOCK_RUNTIME_DIR" "$RLOCK_RUNTIME_DIR" &&
			mount -o remount,ro,bind "$RLOCK_RUNTIME_DIR" || exit 9
			rlock lock --pid $$ a
		'
	else
		chmod 500 "$RLOCK_RUNTIME_DIR"
		run -71 rlock lock --pid $$ a
	fi
	assert_one_line '^rlock: .+$'
	assert_output --partial "$RLOCK_RUNTIME_DIR"
	no_keys
	nothing_runs
}

@test "unlock refuses a runtime directory that others may enter" {
	mkdir -m 755 "$RLOCK_RUNTIME_DIR"
	run -71 rlock unlock a
	assert_one_line '^rlock: .+$'
	assert_output --partial "$RLOCK_RUNTIME_DIR"
}

# ---- unlock --force ----

@test "unlock --force breaks a lock, and says whose it was" {
	held_by_stranger a
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: .*5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1, which may still run$'
	no_keys
}

@test "a lock that is broken goes to its waiter" {
	held_by_stranger a
	in_background rlock run a -- true
	wait_until 5 has_waiters a
	run -0 rlock unlock --force a
	ended_with 0
}

@test "unlock --force of a free lock gives 1" {
	run -1 rlock unlock --force a
	assert_one_line '^rlock: a: .+$'
}

@test "unlock --force --holder leaves the lock to any other owner" {
	held_by_stranger a
	run -1 rlock unlock --force --holder 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:2 a
	assert_one_line '^rlock: a: .*5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1'
	is_held a
}

@test "unlock --force --holder breaks the lock of that holder" {
	held_by_stranger a
	run -0 rlock unlock --force --holder 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1 a
	no_keys
}

@test "the holder whose lock was broken is told by 76" {
	hold_in_background a -t 1s
	run -0 rlock unlock --force a
	ended_with 76
	no_keys
}

@test "a holder with a fixed lease whose lock was broken is told by 76 at its end, and not before" {
	hold_in_background a -l 5m
	run -0 rlock unlock --force a
	is_running "$PID"
	let_go
	ended_with 76
	no_keys
}

@test "a script whose lock was broken is told by unlock" {
	run -76 bash -c 'rlock lock --pid $$ a; rlock unlock -q --force a || exit 9; rlock unlock a; exit'
	assert_one_line '^rlock: a: .*lost.*$'
	wait_until 5 no_keys
}
