#!/usr/bin/env bats
# How a lock without a command is released and renewed: by the script, by its descendants and by others; with several names, with
# another server, inside rlock run, by --owner, and by force.

load ../lib/usual
load ../lib/scripting
load ../lib/proxying
load ../lib/own_servers

BY_RUN="rlock: a: held by 'rlock run', which releases it when its command ends"

# ---- unlock ----

@test "unlock and renew that find no lock of the caller exit with 1, and propose --pid, --owner or sudo's --preserve-env" {
	run -1 bash -c 'rlock lock --pid $$ a; rlock unlock a || exit 9; rlock unlock a; exit'
	assert_output --regexp 'rlock: a: not held by this process or its ancestors; .*--pid PID.*--owner ID; to end another holder: rlock stop NAME$'
	hold_by_foreign_client a
	run -1 rlock renew --pid $$ a
	assert_output --partial " not held by process $$ or its ancestors; "
	start_locking_script lock b
	run -1 rlock unlock b
	is_held b
	if [ "$(id -u)" = 0 ]; then
		SUDO_USER=joe run -1 rlock unlock a
		assert_output --regexp ' not held by this process or its ancestors: .* joe .*without sudo$'
	fi
}

@test "unlock and renew of a mistyped name exit with 1, and show the line for the lock that the caller holds" {
	run -1 bash -c 'rlock lock --pid $$ nightly; rlock renew nihgtly; rlock unlock nighty'
	assert_line --index 0 'rlock: nihgtly: not held, but a lock with a similar name is; try: rlock renew nightly'
	assert_line --index 1 'rlock: nighty: not held, but a lock with a similar name is; try: rlock unlock nightly'
	run -1 bash -c 'rlock lock --pid $$ nightly; rlock unlock weekly'
	assert_output --partial 'weekly: not held by this process'
	wait_until 5 no_rlock_runs
}

@test "unlock works when the renewer was killed; while the server hangs it exits with 69, and works later" {
	start_locking_script lock a
	find_only_renewer
	kill -KILL "$RENEWER"
	wait_until 5 no_rlock_runs
	kill -STOP "$SERVER_PID"
	run -69 rlock unlock --pid "$PID" a
	kill -CONT "$SERVER_PID"
	run -0 rlock unlock --pid "$PID" a
	no_keys
	no_hold_files
}

@test "unlock and renew of a lost lock exit with 76 once and do not touch the new holder's lock" {
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
	assert_equal "$(redis hgetall a)" $'other:1\n1'
	no_hold_files
}

@test "the hold file of a lock that is unlocked during a renewal does not return" {
	local script
	start_proxy
	start_locking_script lock -l 1m a
	script=$PID
	# Load the script, and then hold the reply to the next renewal.
	run -0 rlock renew --pid "$script" a
	proxy hold-reply "$RENEW"
	in_background rlock renew --pid "$script" a
	wait_until 5 eval 'proxy state | grep -q held=1'
	run -0 rlock unlock --pid "$script" a
	proxy release
	# On a busy machine renew may have sent a second request meanwhile, which finds no hold. So its exit code tells nothing here.
	wait_until 30 is_gone "$PID"
	no_hold_files
	run -1 rlock unlock --pid "$script" a
}

@test "renew renews once, also the hold of rlock run, and prints the TTL" {
	local renews='$REDIS pexpire a 15000 >/dev/null; rlock renew a; $REDIS pttl a' how
	for how in "rlock lock --pid \$\$ a; $renews; exec rlock unlock a" "rlock run a -- sh -c '$renews'"; do
		run -0 bash -c "$how"
		assert_output --regexp $'^(30s|2[5-9](\.[0-9]+)?s)\n(2[0-9]{4}|30000)$'
		no_keys
	done
}

# ---- several names ----

@test "names acquired together are unlocked together; unlock of one of them shows the right line, which can be pasted" {
	in_background sleep 300
	rlock lock --pid "$PID" 'my lock' b
	run -64 rlock unlock --pid "$PID" b
	assert_output "rlock: b: was locked together with others; try: rlock unlock --pid $PID 'my lock' b"
	is_held b
	eval "${output##*: }"
	no_keys
	hold_by_foreign_client b
	run -75 rlock lock --pid "$PID" -n a b
	is_free a
}

# ---- another server ----

@test "unlock without the URL by which the lock was acquired names that URL" {
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
	assert_line -n 1 --regexp "^rlock: a: held on another server; try: rlock unlock [^:]*'unix://${OTHER}[^']*' a\$"
	assert_line -n 2 1
	assert_line -n 3 0
}

# ---- unlock --force ----

@test "unlock --force breaks a lock and names its holder; with --holder it breaks that owner's only; for a free lock it exits with 1" {
	local holder=5e8b3cf0-8a4b-4d52-a7f9-3f0e6f0c7a11
	hold_by_foreign_client a
	run -1 rlock unlock --force --holder $holder:2 a
	assert_one_line "^rlock: a: .*$holder:1"
	is_held a
	run -0 rlock unlock --force --holder $holder:1 a
	assert_one_line "^rlock: a: .*$holder:1, which may still run$"
	no_keys
	run -1 rlock unlock --force a
	assert_one_line '^rlock: a: .+$'
}

@test "a holder whose lock was broken ends with 76, with a fixed lease only at its end" {
	hold_in_background a -t 6s
	run -0 rlock unlock --force a
	ended_with 76
	hold_in_background a -l 5m
	run -0 rlock unlock --force a
	is_running "$PID"
	end_commands
	ended_with 76
	no_keys
}

# ---- a script inside a script, or inside rlock run ----

@test "a child of a script that holds the lock, or a program that replaces it, re-enters the lock and releases it again" {
	script_prints '2 1 2 1 2 1 2' 'rlock lock --pid $$ a
		rlock run a -- $REDIS hvals a
		$REDIS hvals a
		dash -c "rlock lock --pid \$\$ a; $REDIS hvals a; rlock unlock a"
		$REDIS hvals a
		dash -c "rlock lock --pid \$\$ a; $REDIS hvals a; exit"
		until [ "$($REDIS hvals a)" = 1 ]; do :; done
		$REDIS hvals a
		exec rlock run a -- $REDIS hvals a'
	wait_until 5 is_free a
}

@test "unlock releases the innermost hold of nested run, lock, run and lock" {
	run -0 bash -c '
		rlock lock --pid $$ a
		rlock run a -- bash -c "
			rlock lock --pid \$\$ a
			rlock run a -- rlock unlock a
			rlock unlock a
			echo status \$?
			rlock unlock a
			echo status \$?
		"
		$REDIS hvals a
	'
	assert_output "$BY_RUN"$'\nstatus 0\n'"$BY_RUN"$'\nstatus 1\n1'
}

@test "unlock inside rlock run does not release a hold that belongs to a script outside" {
	script_prints "2 $BY_RUN 1 1 0" '
		OUTER=$$ rlock run a -- sh -c "rlock lock --pid \$OUTER a; \$REDIS hvals a; rlock unlock a; echo \$?"
		$REDIS hvals a
		rlock unlock a
		$REDIS exists a'
	# If one of several names is held by the run around the script, unlock must still release the others.
	script_prints "$BY_RUN 1 0" 'rlock run a -- sh -c "rlock lock --pid \$\$ b; rlock unlock a b; echo \$?; \$REDIS exists b"'
}

@test "inside a run whose renewer was killed unlock releases the inner lock, and then says that the run holds it" {
	# Repeat this: rlock orders the processes by their start times, and only sometimes do all of them start in the same clock
	# tick.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		script_prints "0 2 $BY_RUN 1" 'rlock lock --pid $$ a
			rlock run a -- sh -c "rlock lock --pid \$\$ a; kill -KILL \$PPID; rlock unlock a
			echo \"\$? \$($REDIS hvals a)\"; rlock unlock a; echo \$?"'
		wait_until 5 is_free a
	done
}

@test "a lock acquired from outside for a process inside rlock run is released by that process, or by --pid" {
	in_background rlock read a -- sh -c '
		echo $$ >pid
		touch ready
		run_until_ended
		rlock unlock a
		echo $? >status'
	wait_until 5 file_exists ready
	run -0 rlock read --pid "$(<pid)" a
	end_commands
	ended_with 0
	assert_equal "$(<status)" 0
	in_background sleep 300
	rlock read --pid "$PID" a
	run -0 rlock read a -- rlock unlock --pid "$PID" a
	no_keys
}

# ---- --owner: the steps of a job, in shells that know nothing of each other ----

@test "three shells lock, renew and unlock for one --owner, without a process, a file or a runtime directory" {
	export RLOCK_RUNTIME_DIR=/proc/nowhere
	run -0 sh -c 'rlock lock --owner job-1 --lease 1m a b; rlock unlock --owner job-2 a 2>/dev/null || exit 0'
	assert_output ''
	no_rlock_runs
	redis pexpire a 15000 >/dev/null
	run -0 sh -c 'rlock renew --owner job-1 --lease 1h a b; exit'
	assert_output --regexp '^(1h00m|59m5[0-9]s)'
	ttl_is_above a 3500000
	ttl_is_above b 3500000
	run -0 sh -c 'rlock unlock --owner job-1 a b; exit'
	assert_output ''
	no_keys
}

@test "names that an owner locked together are renewed and unlocked together; a call with only one exits with 64 and releases nothing" {
	local verb name
	rlock lock --owner ci --lease 1m a b
	rlock lock --owner ci --lease 1m c
	redis pexpire a 20000 >/dev/null
	for verb in 'renew --lease 1h' unlock; do
		for name in a 'a c'; do
			# shellcheck disable=SC2086
			run -64 rlock $verb --owner ci $name
			assert_one_line "^rlock: a: was locked together with 1 other; give all 2 names to 'rlock ${verb%% *} --owner ci'"
		done
	done
	run -1 ttl_is_above a 20000
	is_held a
	is_held b
	is_held c
	# "c" was locked later than the other names, by a hold of its own.
	rlock unlock --owner ci b c a
	no_keys
}

@test "an owner that re-entered one of several names unlocks that hold first; if one name is lost, the others are released" {
	rlock lock --owner ci --lease 1m a b
	rlock lock --owner ci --lease 1m b
	run -64 rlock unlock --owner ci a b
	assert_output "rlock: a: was locked together with 1 other; give all 2 names to 'rlock unlock --owner ci', after the lock that one of them has got since"
	rlock unlock --owner ci b
	rlock unlock --force a
	run -1 rlock unlock --owner ci a b
	assert_one_line "^rlock: a: not held by owner 'ci'"
	no_keys
}

@test "another owner can neither acquire, unlock nor renew the lock, and the message names its holder" {
	local verb
	run -0 rlock lock --owner job-101 --lease 1m --note 'deploy step' a
	run -75 rlock lock --owner job-102 --lease 1h -n a
	assert_output ''
	run -75 rlock run -n a -- true
	for verb in renew unlock; do
		run -1 rlock "$verb" --owner job-102 a
		assert_output "rlock: a: not held by owner 'job-102': held by job-101 (deploy step); use one id for all jobs of a pipeline"
	done
	has_hold_count a 1
	run -1 ttl_is_above a 60000
	run -1 rlock renew --owner job-1 b
	assert_output "rlock: b: not held by owner 'job-1': it is free: its lease may have expired"
	hold_in_background b --note backup
	run -1 rlock unlock --owner job-4 b
	assert_output --regexp "^rlock: b: not held by owner 'job-4': held by [^ ]+:$PID \(backup\)$"
}

@test "the same owner re-enters and must unlock as often; neither a shorter lease nor a renewal shortens the lock" {
	local id
	# The longest owner id that is allowed.
	id=A.b_c-$(printf '9%.0s' {1..122})
	# A lock that a process has acquired for an owner must not belong to that process.
	run -1 bash -c 'rlock lock --owner "$0" --lease 1h a; rlock unlock a; exit' "$id"
	run -0 rlock lock --owner "$id" --lease 20s -n a
	has_hold_count a 2
	run -0 rlock renew --owner "$id" --lease 20s a
	assert_output --regexp '^(1h00m|59m[0-9]{2}s)$'
	run -0 rlock unlock --owner "$id" a
	has_hold_count a 1
	ttl_is_above a 3000000
	run_timed_out 75 rlock run -w 1s a -- true
	[[ $output =~ \(([^\)]*)\)\ for ]]
	run -0 rlock unlock --force --holder "${BASH_REMATCH[1]}" a
	no_keys
}
