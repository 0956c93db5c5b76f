#!/usr/bin/env bats
# How a script's lock is released and renewed: unlock and renew by the script and by others, of several names, with another
# server, and unlock --force.

# In single quotes stand whole scripts: what is to be expanded is theirs.
# shellcheck disable=SC2016

load ../lib/helpers
load ../lib/leftovers
load ../lib/scripting
load ../lib/own_servers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- unlock ----

@test "unlock and renew that find no lock of the caller's give 1, and say how to name its process or owner, or that sudo hides it" {
	run -1 bash -c 'rlock lock --pid $$ a; rlock unlock a || exit 9; rlock unlock a; exit'
	assert_output --regexp 'rlock: a: not held by this process or its ancestors: .*--pid PID.*--owner ID$'
	held_by_stranger a
	run -1 rlock renew --pid $$ a
	assert_output --partial " not held by process $$ or its ancestors: "
	run -1 rlock unlock a
	is_held a
	start_locking_script lock b
	run -1 rlock unlock b
	is_held b
	if [ "$(id -u)" = 0 ]; then
		SUDO_USER=joe run -1 rlock unlock a
		assert_output --regexp ' not held by this process or its ancestors: .* joe .*without sudo$'
	fi
}

@test "unlock works when the renewer was killed" {
	start_locking_script lock a
	kill -KILL "$(renewers)"
	wait_until 5 nothing_runs
	run -0 rlock unlock --pid "$PID" a
	no_keys
	no_hold_files
}

@test "unlock and renew say 76 when the lock had been lost, leave the new holder alone, and then there is nothing to unlock" {
	run -1 bash -c '
		rlock lock --pid $$ a
		$REDIS del a >/dev/null
		$REDIS hset a other:1 1 >/dev/null
		rlock renew a
		echo $?
		rlock unlock a
		echo $?
		rlock unlock a 2>/dev/null
	'
	assert_line --index 0 'rlock: a: it expired or was deleted on the server'
	assert_line --index 1 76
	assert_line --index 2 --regexp '^rlock: a: .*lost.*$'
	assert_line --index 3 76
	assert_equal "$(redis hgetall a)" "other:1
1"
	no_hold_files
}

@test "renew and unlock find the script's lock in the script's own place, as the last command of sh -c" {
	# Some shells run the last command by exec: then the script's process is rlock itself.
	run -0 bash -c 'rlock lock --pid $$ a; exec rlock renew a'
	wait_until 5 is_free a
	run -0 bash -c 'rlock lock --pid $$ a; exec rlock unlock a'
	assert_output ''
	no_keys
}

@test "unlock while the server hangs says 69, and is no lost lock when it is tried again" {
	start_locking_script lock a
	kill -STOP "$SERVER_PID"
	run -69 rlock unlock --pid "$PID" a
	kill -CONT "$SERVER_PID"
	run -0 rlock unlock --pid "$PID" a
	no_keys
}

@test "renew renews once, also the hold of rlock run, and prints what is left" {
	run -0 bash -c 'rlock lock --pid $$ a; $REDIS pexpire a 5000 >/dev/null; rlock renew a; $REDIS pttl a; rlock unlock a'
	assert_line -n 0 --regexp '^(30s|29\.[0-9]+s)$'
	assert_line -n 1 --regexp '^(2[0-9]{4}|30000)$'
	run -0 rlock run a -- bash -c '$REDIS pexpire a 5000 >/dev/null; rlock renew a; $REDIS pttl a'
	assert_line -n 0 --regexp '^(30s|29\.[0-9]+s)$'
	assert_line -n 1 --regexp '^(2[0-9]{4}|30000)$'
}

# ---- several names ----

@test "names are acquired together or not at all, and unlocked together, in any order" {
	run -0 bash -c 'rlock lock --pid $$ a b; $REDIS exists a b; rlock unlock b a; $REDIS exists a b'
	assert_output "2
0"
	held_by_stranger b
	run -75 rlock lock --pid $$ -n a b
	is_free a
	wait_until 5 nothing_runs
}

@test "of one of two names that were locked together the right line is shown, with the process that --pid named" {
	in_background sleep 300
	rlock lock --pid "$PID" a b
	run -64 rlock unlock --pid "$PID" a
	assert_output "rlock: a: was locked together with others: try: rlock unlock --pid $PID a b"
	is_held a
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

@test "a lock of rlock run does not keep unlock from the others that are named with it" {
	run -1 rlock run a -- bash -c 'rlock lock --pid $$ b; rlock unlock a b; status=$?; $REDIS exists b; exit $status'
	assert_line '0'
	assert_line --regexp "^rlock: a: held by 'rlock run'"
	[ "${#lines[@]}" -eq 2 ]
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

@test "unlock without the URL that the lock was taken with names it" {
	start_second_server
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

# ---- unlock --force ----

@test "unlock --force breaks a lock, and says whose it was; of a free one it gives 1" {
	held_by_stranger a
	run -0 rlock unlock --force a
	assert_one_line '^rlock: a: .*5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1, which may still run$'
	no_keys
	run -1 rlock unlock --force a
	assert_one_line '^rlock: a: .+$'
}

@test "unlock --force --holder breaks the lock of that holder, and leaves it to any other owner" {
	held_by_stranger a
	run -1 rlock unlock --force --holder 5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:2 a
	assert_one_line '^rlock: a: .*5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11:1'
	is_held a
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
