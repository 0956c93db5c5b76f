#!/usr/bin/env bats
# rlock run: the lock is held while the command runs, what the command ends with is what rlock ends with, and a command that
# cannot run is told of; its times: the lease and its renewal, a fixed lease, --at-least, --max-run and --grace; and what it says of
# these with -v.

load ../lib/usual

teardown() { patient_teardown; }

# ---- how it ends ----

@test "what the command ends with is what rlock ends with, without a word, and nothing stays locked" {
	local status
	for status in 0 7 255; do
		run "-$status" rlock run a -- sh -c "exit $status"
		assert_output ''
	done
	run -137 rlock run a -- sh -c 'kill -KILL $$'
	assert_output ''
	no_keys
}

# What bash says of a child that a signal has ended, on one line; nothing of one that has exited.
how_it_ended() {
	LC_ALL=C bash -c '"$@"; :' bash "$@" 2>&1
}

@test "a signal that ended the command ends rlock too" {
	run how_it_ended rlock run a -- sh -c 'kill -KILL $$'
	assert_output --partial Killed
	run how_it_ended rlock run a -- sh -c 'kill -TERM $$'
	assert_output --partial Terminated
}

# ---- a command that cannot run ----

@test "a command that is not there is told before the lock is taken" {
	local before
	before=$(server_commands)
	run -127 rlock run a -- no-such-command-anywhere
	assert_equal $(($(server_commands) - before)) 1
	assert_one_message
	assert_output --partial "no-such-command-anywhere"
	run -127 rlock run a -- "$BATS_TEST_TMPDIR/no/such/file"
	assert_one_message
	run -127 rlock run a -- ''
	assert_output "rlock: a: '': command not found: no directory of PATH has it: give its path"
	# Nor behind an entry of PATH that has none.
	mkdir bin
	touch bin/only-here
	PATH=$PWD/bin:$PATH run -126 rlock run a -- only-here
	assert_one_message
	run -126 rlock run a -- /
	assert_output 'rlock: a: cannot run /: it is a directory: name a program in it'
	assert_equal $(($(server_commands) - before)) 2
}

@test "a file that may not be executed is told before the lock is taken" {
	local before file=$BATS_TEST_TMPDIR/not-executable
	echo '#!/bin/sh' >"$file"
	before=$(server_commands)
	run -126 rlock run a -- "$file"
	assert_equal $(($(server_commands) - before)) 1
	assert_output "rlock: a: cannot run $file: Permission denied: it is not executable: try: chmod +x $file"
	# Found by PATH, after which other directories are searched.
	PATH=${file%/*}:$PATH:/no/such run -126 rlock run a b -- not-executable
	assert_output "rlock: a b: cannot run not-executable: Permission denied: it is not executable: try: chmod +x $file"
}

# script_for NAME INTERPRETER: an executable file with that first line.
script_for() {
	printf '#!%s\n' "$2" >"$BATS_TEST_TMPDIR/$1"
	chmod +x "$BATS_TEST_TMPDIR/$1"
}

@test "a script whose interpreter is missing is told of it before the lock is taken" {
	local before
	before=$(server_commands)
	script_for script ' /no/such/interpreter -x'
	run -126 rlock run a -- "$BATS_TEST_TMPDIR/script"
	assert_one_message
	assert_output --partial "bad interpreter: '/no/such/interpreter' is not there"
	PATH=$BATS_TEST_TMPDIR:$PATH run -126 rlock run a -- script
	assert_output --partial "rlock: a: cannot run script: bad interpreter: '/no/such/interpreter'"
	# As an editor of another system leaves it.
	script_for script $'/bin/sh\r'
	run -126 rlock run a -- "$BATS_TEST_TMPDIR/script"
	assert_one_message
	assert_output --partial "bad interpreter: '/bin/sh"
	assert_equal $(($(server_commands) - before)) 1
}

@test "a command that was meant for a shell is shown with one" {
	# No directory of commands has a cd then.
	PATH=/no/such run -127 "$RLOCK_BIN" run -w 3s a -- cd /tmp
	assert_output "rlock: a: cd: command not found: no shell reads COMMAND: try: rlock run -w 3s a -- sh -c 'cd /tmp'"
	PATH=/no/such run -127 "$RLOCK_BIN" run a -- no-such-command
	assert_output 'rlock: a: no-such-command: command not found: no directory of PATH has it: give its path'
}

# ---- what it costs the server ----

@test "the scripts of an uncontended lock run twelve commands on the server" {
	# From here on the server knows the scripts.
	rlock run a -- true
	redis config resetstat >/dev/null
	rlock run a -- true
	run -0 commands_in_scripts
	((output <= 12)) || fail "$output commands"
}

# ---- the lease ----

@test "the lock is taken for thirty seconds at a time unless told otherwise" {
	run -0 rlock run a -- ask_redis "$SERVER_SOCKET" pttl a
	assert_between 20000 "$output" 30000
	run -0 rlock run -t 5s a -- ask_redis "$SERVER_SOCKET" pttl a
	assert_between 1000 "$output" 5000
}

@test "a lock is renewed at a third of its lease, for as long as the command runs" {
	local -a left
	local i in_time=0
	hold_in_background a -t 3s
	mapfile -t left < <(redis -r 400 -i 0.01 pttl a)
	is_running "$PID"
	# What was left before a renewal: one of several is in time, and is seen at once, on any machine.
	for ((i = 1; i < ${#left[@]}; i++)); do
		((left[i] <= left[i - 1] || left[i - 1] < 1300 || left[i - 1] > 2100)) || ((++in_time))
	done
	assert [ "$in_time" -ge 1 ]
	let_go
	wait "$PID"
	no_keys
}

@test "nothing renews a fixed lease, and the command is gone before it ends, with status 124 and one line" {
	local -a left
	local i
	# It does not heed SIGTERM, and looks at what is left for as long as it lives.
	run -124 rlock run -l 4s a -- sh -c 'trap "" TERM
		exec redis-cli -s "$SERVER_SOCKET" -r 1000 -i 0.01 pttl a >left'
	assert_one_message
	assert_output --regexp '^rlock: a: .*lease'
	no_keys
	mapfile -t left <left
	assert [ "${#left[@]}" -gt 20 ]
	assert_between 1 "${left[0]}" 4000
	for ((i = 1; i < ${#left[@]}; i++)); do
		assert [ "${left[i]}" -le "${left[i - 1]}" ]
	done
	assert_between 0 "${left[-1]}" 3000
}

# wakes_up_between PID LEAST_S MOST_S: its timer, as the kernel shows it, is set to that time from now.
wakes_up_between() {
	local left_s
	left_s=$(sed -n 's/^it_value: (\([0-9]*\),.*/\1/p' "/proc/$1"/fdinfo/* 2>/dev/null | sort -n | tail -n 1)
	[ -n "$left_s" ] && ((left_s >= $2 && left_s <= $3))
}

# A thousandth of a day is 86 s.
@test "a lease is counted on for a thousandth less than the server was told, as clocks run at different speeds" {
	local most_s=$((86400 - 86))
	# Of 50 minutes it is 3 s. That of a longer lease would be hidden: each hour its renewer looks at the lock's file.
	rlock lock --pid $$ --lease 50m --grace 1ms mine
	wait_until 10 wakes_up_between "$(renewers)" 2900 $((3000 - 4))
	rlock unlock --pid $$ mine
	# One that is renewed is counted in the same way (tests/unit/test_lease.c), but its renewal comes first.
	hold_in_background name --lease 24h
	wait_until 10 wakes_up_between "$(renewer_of "$PID")" 86000 $most_s
}

# ---- at least ----

@test "a lock with a least time stays taken after the command, and rlock returns at once" {
	local start
	start=$(now_ms)
	run -0 rlock run --at-least 60s a -- true
	assert_output ''
	assert_between 0 $(($(now_ms) - start)) 30000
	assert_between 50000 "$(redis pttl a)" 60000
	run -75 rlock run -n a -- true
	# From when the locks were acquired, however long their lease.
	run -0 rlock run -t 60s --at-least 20s b c -- sleep 0.6
	assert_between 1 "$(redis pttl b)" 19400
	assert_between 1 "$(redis pttl c)" 19400
}

@test "a lock with a least time expires, and a waiter gets it then" {
	local start
	start=$(now_ms)
	run -0 rlock run --at-least 700ms a -- true
	run -0 rlock run -w 10s a -- true
	assert_between 650 $(($(now_ms) - start)) 9000
	no_keys
}

@test "a failed command does not cut the least time short" {
	run -3 rlock run --at-least 30s a -- sh -c 'exit 3'
	is_held a
	run -137 rlock run --at-least 30s b -- sh -c 'kill -KILL $$'
	is_held b
	run -124 rlock run --at-least 30s --max-run 100ms c -- until_let_go
	is_held c
}

@test "a command that takes longer than the least time releases the lock when it ends" {
	run -0 rlock run --at-least 100ms a -- sleep 0.3
	no_keys
}

# ---- at most ----

@test "a command that runs too long is stopped, with status 124 and one line" {
	local start
	start=$(now_ms)
	run -124 rlock run --max-run 300ms a -- until_let_go
	assert_between 300 $(($(now_ms) - start)) 30000
	assert_one_message
	assert_output --regexp '^rlock: a: .*300ms'
	no_keys
}

@test "a command that hears SIGTERM can clean up with other commands until the grace time is over" {
	run -124 rlock run --max-run 3s --grace 20s a -- sh -c '
		trap "for i in 1 2 3 4 5; do sleep 0.05; echo \$? >>cleaned; done; exit 0" TERM
		until_let_go & wait'
	assert_equal "$(sort cleaned | uniq -c | tr -s " ")" ' 5 0'
}

@test "a command that ignores SIGTERM is killed after the grace time" {
	local start
	start=$(now_ms)
	run -124 rlock run --max-run 3s --grace 400ms a -- sh -c 'trap "" TERM; exec until_let_go'
	assert_between 3400 $(($(now_ms) - start)) 30000
}

@test "a stopped command is continued to take the signal of --signal" {
	run -124 rlock run --max-run 3s --grace 20s --signal HUP a -- bash -c '
		trap "touch heard; exit 0" HUP; kill -STOP $$; until_let_go & wait'
	file_exists heard
}

@test "leftover processes of a command that was told to end get the signal of --signal" {
	in_background rlock run --grace 20s --signal USR1 a -- sh -c 'log_signals & exec until_let_go'
	wait_until 10 file_says signals ready
	kill -TERM "$PID"
	wait_until 10 file_says signals USR1
	let_go
	ended_with 143
	refute grep -q TERM signals
}

@test "what a command leaves on purpose when it ends by itself runs on" {
	local pid
	run -0 rlock run a -- sh -c 'until_let_go >/dev/null 2>&1 3>&- & echo $!'
	pid=$output
	BACKGROUND+=("$pid")
	no_keys
	is_running "$pid"
	let_go
	wait_until 5 is_gone "$pid"
}

# ---- what it says ----

ISO_8601='[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[-+][0-9]{2}:[0-9]{2}'

@test "with -v rlock says after which time the lock was acquired and released, or until when --at-least keeps it" {
	run -0 rlock run -v nightly -- true
	assert_line --regexp '^rlock: nightly: acquired after [0-9.]+s$'
	assert_line --regexp '^rlock: nightly: released after [0-9.]+s$'
	echo 'quiet = yes' >conf
	run -0 rlock run --config conf -v nightly -- true
	assert_line --regexp '^rlock: nightly: acquired after [0-9.]+s$'
	run -0 rlock run -v --at-least 1m nightly -- true
	assert_line --regexp "^rlock: nightly: the command has ended after [0-9.]+s: kept by --at-least until $ISO_8601$"
}

@test "a lock that --at-least keeps is said to be kept, and until when" {
	local kept="kept by --at-least, its job has ended: the sync \\([^ ]+:[0-9]+\\), until $ISO_8601" until
	rlock run --at-least 1h --note 'the sync' nightly -- true
	run -75 rlock run -n -v nightly -- true
	assert_line --regexp "^rlock: nightly: busy: $kept\$"
	run -75 env CI=true rlock run -w 2s nightly -- true
	assert_line --regexp "^rlock: nightly: waiting: kept by --at-least, its job has ended: the sync, until $ISO_8601\$"
	assert_line --regexp "^rlock: nightly: timed out after 2s: $kept: give a longer --wait\$"
	run -0 rlock status nightly
	assert_line --regexp "^  kept by --at-least until $ISO_8601: its job has ended\$"
	until=$(sed -n 's/.* until \([^ ]*\): .*/\1/p' <<<"$output")
	assert_between $(($(date +%s) + 3400)) "$(date -d "$until" +%s)" $(($(date +%s) + 3600))
	run -1 rlock unlock --force --holder another nightly
	assert_output --regexp "^rlock: nightly: not broken: $kept\$"
	run -0 rlock unlock --force nightly
	assert_output --regexp "^rlock: nightly: lock broken: --at-least kept it until $ISO_8601, its job has ended: the sync \\("
}

@test "a release that failed says when the lock expires, and the server's words come last" {
	run -0 rlock run --ttl 20s nightly -- bash -c "
		redis-cli -s '$SERVER_SOCKET' replicaof 127.0.0.1 1
		redis-cli -s '$SERVER_SOCKET' client kill type normal
	"
	redis replicaof no one >/dev/null
	assert_line --regexp '^rlock: nightly: release failed: .*: the lock expires with its lease, in about 1[0-9]s: READONLY '
}
