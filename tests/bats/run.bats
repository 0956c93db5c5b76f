#!/usr/bin/env bats
# rlock run: the lock is held while the command runs, what the command ends with is what rlock ends
# with, and the command sees the world as it would without rlock.

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
}
# Lets each of them end: what is killed may be heard of on the server during the next test.
teardown() {
	local pid
	let_go
	for pid in "${BACKGROUND[@]}"; do
		wait_until 5 is_gone "$pid" || break
	done
	common_teardown
}

# ---- helpers ----

# One line, and it is rlock's.
assert_one_message() {
	assert_equal "${#lines[@]}" 1
	assert_output --regexp '^rlock: .'
}

# assert_between LEAST VALUE MOST
assert_between() {
	assert [ "$1" -le "$2" ]
	assert [ "$2" -le "$3" ]
}

has_lines() {
	[ -e "$1" ] && [ "$(wc -l <"$1")" = "$2" ]
}

# What bash says of a child that a signal has ended, on one line; nothing of one that has exited.
how_it_ended() {
	LC_ALL=C bash -c '"$@"; :' bash "$@" 2>&1
}

# How many commands the server did for: COMMAND [ARG...].
server_commands_of() {
	local before
	before=$(server_commands)
	"$@" || :
	echo $(($(server_commands) - before - 1))
}

# ---- how it ends ----

@test "a command that succeeds lets rlock succeed" {
	run -0 rlock run a -- true
	assert_output ''
}

@test "the command's exit status is rlock's" {
	run -7 rlock run a -- sh -c 'exit 7'
	assert_output ''
}

@test "even the highest exit status is passed on" {
	run -255 rlock run a -- sh -c 'exit 255'
	assert_output ''
}

@test "a command that was killed looks killed to a shell" {
	run -137 rlock run a -- sh -c 'kill -KILL $$'
	assert_output ''
}

@test "a signal that ended the command ends rlock too" {
	# shellcheck disable=SC2016
	run how_it_ended rlock run a -- sh -c 'kill -KILL $$'
	assert_output --partial Killed
	# shellcheck disable=SC2016
	run how_it_ended rlock run a -- sh -c 'kill -TERM $$'
	assert_output --partial Terminated
}

@test "a failed command leaves nothing locked" {
	run -1 rlock run a -- false
	no_keys
	# shellcheck disable=SC2016
	run -137 rlock run a -- sh -c 'kill -KILL $$'
	no_keys
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
	assert_one_message
	assert_equal $(($(server_commands) - before)) 2
}

@test "a file that may not be executed is told before the lock is taken" {
	local before file=$BATS_TEST_TMPDIR/not-executable
	echo '#!/bin/sh' >"$file"
	before=$(server_commands)
	run -126 rlock run a -- "$file"
	assert_equal $(($(server_commands) - before)) 1
	assert_one_message
	assert_output --partial not-executable
}

@test "a directory is no command, which is told before the lock is taken" {
	local before
	before=$(server_commands)
	run -126 rlock run a -- /
	assert_equal $(($(server_commands) - before)) 1
	assert_one_message
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
	assert_output --partial "cannot run script: bad interpreter: '/no/such/interpreter'"
	# As an editor of another system leaves it.
	script_for script $'/bin/sh\r'
	run -126 rlock run a -- "$BATS_TEST_TMPDIR/script"
	assert_one_message
	assert_output --partial "bad interpreter: '/bin/sh"
	assert_equal $(($(server_commands) - before)) 1
}

@test "an interpreter whose own interpreter is missing leaves nothing locked" {
	not_under_valgrind 'it takes the place of the command before it finds that out'
	script_for inner /no/such/interpreter
	script_for script "$BATS_TEST_TMPDIR/inner"
	run -126 rlock run a -- "$BATS_TEST_TMPDIR/script"
	assert_one_message
	assert_output --partial interpreter
	no_keys
}

@test "a script without a first line, or with an interpreter that is there, runs" {
	script_for script ''
	echo 'echo ran' >>"$BATS_TEST_TMPDIR/script"
	run -0 rlock run a -- "$BATS_TEST_TMPDIR/script"
	assert_output ran
	script_for script $'\t/bin/sh -e'
	echo 'echo ran' >>"$BATS_TEST_TMPDIR/script"
	run -0 rlock run a -- "$BATS_TEST_TMPDIR/script"
	assert_output ran
}

# not_found LINE WORD...: these words as COMMAND are not found, and the line is shown.
not_found() {
	local line=$1
	shift
	# No directory of commands has a cd then.
	PATH=/no/such run -127 "$RLOCK_BIN" run -w 3s a -- "$@"
	assert_one_message
	assert_output --partial "command not found: no shell reads COMMAND: try: rlock run -w 3s a -- $line"
}

@test "a command that was meant for a shell is shown with one" {
	not_found "sh -c 'echo 1 && echo 2'" 'echo 1 && echo 2'
	not_found "sh -c 'cd /tmp'" cd /tmp
	not_found "sh -c 'echo hi'" 'echo hi'
	not_found "sh -c 'echo hi'" -c 'echo hi'
	not_found 'env A=1 printenv A' A=1 printenv A
	PATH=/no/such run -127 "$RLOCK_BIN" run a -- no-such-command
	assert_output 'rlock: no-such-command: command not found'
}

@test "a command is not searched behind a PATH entry that has none" {
	mkdir "$BATS_TEST_TMPDIR/bin"
	touch "$BATS_TEST_TMPDIR/bin/only-here"
	PATH=$BATS_TEST_TMPDIR/bin:$PATH run -126 rlock run a -- only-here
	assert_one_message
}

# ---- taking turns ----

@test "while the command runs the lock is held, and afterwards no key is left" {
	run -0 rlock run a -- ask_redis "$SERVER_SOCKET" exists a
	assert_output 1
	no_keys
}

@test "a second caller that does not wait is turned away without a word" {
	hold_in_background a
	run -75 rlock run -n a -- true
	assert_output ''
	run -75 rlock run --wait 0 a -- true
	assert_output ''
	run -75 rlock run -w 0ms a -- true
	assert_output ''
}

@test "a second caller that waits gets the lock when the first one ends" {
	hold_in_background a
	in_background rlock run a -- touch "$BATS_TEST_TMPDIR/second"
	wait_until 5 has_waiters a 1
	refute file_exists "$BATS_TEST_TMPDIR/second"
	let_go
	wait_until 5 file_exists "$BATS_TEST_TMPDIR/second"
	wait_until 5 no_keys
}

@test "a caller with a wait time waits that long, and says which holder has the lock" {
	local start
	hold_in_background a --note 'nightly backup of db1'
	start=$(now_ms)
	run -75 rlock run -w 400ms a -- true
	assert_between 400 $(($(now_ms) - start)) 6000
	assert_one_message
	assert_output --regexp '^rlock: a: .*nightly backup of db1'
}

@test "without a note the holder is known by host, user, process and program" {
	hold_in_background a
	run -75 env LOGNAME=other rlock run -w 50ms a -- true
	assert_one_message
	assert_output --regexp "[^ ]+@$(uname -n) pid $PID until_let_go"
}

@test "a lock that is released in time is acquired within the wait time" {
	hold_in_background a
	in_background rlock run -w 20s a -- touch "$BATS_TEST_TMPDIR/second"
	wait_until 5 has_waiters a 1
	let_go
	wait_until 5 file_exists "$BATS_TEST_TMPDIR/second"
}

@test "the exit status for a lock that was not acquired can be chosen" {
	hold_in_background a
	run -9 rlock run -n -E 9 a -- true
	run -0 rlock run -n -E 0 a -- false
	run -255 rlock run --conflict-exit-code 255 -w 50ms a -- true
	assert_one_message
}

@test "the chosen exit status does not hide the command's" {
	run -3 rlock run -n -E 0 a -- sh -c 'exit 3'
}

@test "quiet says nothing about a lock that was not acquired" {
	hold_in_background a
	run -75 rlock run -q -w 50ms a -- true
	assert_output ''
	run -75 rlock run --quiet --verbose --wait 50ms a -- true
	refute_output --partial 'not had'
}

@test "a verbose caller is told after a second for what and for which holder it waits" {
	hold_in_background a --note 'nightly backup'
	run -75 rlock run -v -w 1.05s a -- true
	assert_equal "$(grep -c 'waiting for' <<<"$output")" 1
	assert_line --regexp '^rlock: .*a: waiting for nightly backup \([^ ]+\), held for [0-9.]+s$'
}

@test "a verbose caller that waits for Java is not told for how long" {
	held_by_stranger a
	run -75 rlock run -v -w 1.05s a -- true
	assert_line --regexp 'a: waiting for [^ ]+$'
}

@test "a wait of less than a second makes no progress line" {
	hold_in_background a
	run -75 rlock run -v -w 100ms a -- true
	refute_output --partial 'waiting for'
}

@test "on a terminal the progress line comes without being asked for, elsewhere and with quiet it does not" {
	hold_in_background a --note 'nightly backup'
	in_background script -qec "rlock run -q -w 1.05s a -- true" /dev/null >quiet </dev/null
	in_background rlock run -w 1.05s a -- true 2>file
	run script -qec "rlock run -w 1.05s a -- true" /dev/null </dev/null
	assert_line --regexp 'rlock: a: waiting for nightly backup'
	wait "${BACKGROUND[@]:1}" || :
	assert_equal "$(cat quiet)" ''
	run -0 cat file
	assert_one_message
	refute_output --partial waiting
}

@test "verbose tells each step and names the server" {
	run -0 rlock run -v a -- true
	assert_line --index 0 --partial "unix://$SERVER_SOCKET"
}

@test "a holder's bytes reach a terminal escaped" {
	redis hset a $'\e[31mred:1' 1 >/dev/null
	run -75 rlock run -w 50ms a -- true
	assert_one_message
	refute_output --partial $'\e'
	assert_output --partial 'red:1'
}

@test "a lock whose holder has vanished is acquired when its lease is over" {
	redis hset a gone:1 1 >/dev/null
	redis pexpire a 400 >/dev/null
	run -0 rlock run -w 10s a -- true
	assert_output ''
}

# ---- many ----

@test "ten shells that add to a number in a file under one lock lose no count" {
	local each=50 i number=$BATS_TEST_TMPDIR/number
	[ -z "${RLOCK_LONG_TESTS:-}" ] || each=1000
	[ -z "${TESTS_UNDER:-}" ] || each=20
	echo 0 >"$number"
	for i in {1..10}; do
		# shellcheck disable=SC2016
		in_background sh -c 'i=0
			while [ $i -lt "$1" ]; do
				rlock run counter -- sh -c '\''read n <"$0"; echo $((n + 1)) >"$0"'\'' "$2" ||
					exit
				i=$((i + 1))
			done' sh "$each" "$number"
	done
	wait "${BACKGROUND[@]}"
	assert_equal "$(cat "$number")" $((10 * each))
	no_keys
}

@test "of twenty waiters each one gets its turn, one at a time, and nothing is left" {
	local i
	hold_in_background a
	for i in {1..20}; do
		# shellcheck disable=SC2016
		in_background rlock run a -- sh -c 'mkdir inside || echo overlap >>turns
			echo turn >>turns; rmdir inside'
	done
	wait_until 10 has_waiters a 20
	let_go
	wait "${BACKGROUND[@]}"
	assert_equal "$(sort turns | uniq -c | tr -s ' ')" ' 20 turn'
	no_keys
	assert_equal "$(redis pubsub channels)" ''
}

@test "waiting longer does not cost the server more" {
	local short long
	hold_in_background a
	short=$(server_commands_of rlock run -q -w 300ms a -- true)
	long=$(server_commands_of rlock run -q -w 2s a -- true)
	assert_between 1 "$short" 50
	assert_equal "$long" "$short"
}

@test "a waiter starts within 200 ms of the release" {
	local late=0 limit=200
	[ -z "${TESTS_UNDER:-}" ] || limit=2000
	# Another try where the machine itself was busy.
	for _ in {1..10}; do
		rm -f let-go released started
		# shellcheck disable=SC2016
		in_background rlock run a -- bash -c 'until_let_go; echo "${EPOCHREALTIME/./}" >released'
		wait_until 5 is_held a
		# shellcheck disable=SC2016
		in_background rlock run a -- bash -c 'echo "${EPOCHREALTIME/./}" >started'
		wait_until 5 has_waiters a 1
		let_go
		wait "$PID"
		late=$((($(cat started) - $(cat released)) / 1000))
		[ "$late" -gt "$limit" ] || break
	done
	assert_between 0 "$late" "$limit"
}

# ---- several names ----

@test "several names are locked together, and released together" {
	run -0 rlock run a b c -- ask_redis "$SERVER_SOCKET" exists a b c
	assert_output 3
	no_keys
}

@test "when one of several names is taken, none of the others is" {
	hold_in_background b --note 'the holder'
	run -75 rlock run -n a b c -- true
	assert_output ''
	is_free a
	is_free c
	run -75 rlock run -w 50ms a b c -- true
	assert_one_message
	assert_output --regexp '^rlock: b: .*the holder'
	is_free a
	is_free c
}

@test "a waiter for one of several names keeps none of the others meanwhile" {
	hold_in_background b
	in_background rlock run a b -- touch "$BATS_TEST_TMPDIR/both"
	wait_until 5 has_waiters b 1
	run -0 rlock run -n a -- true
	let_go
	wait_until 5 file_exists "$BATS_TEST_TMPDIR/both"
	wait_until 5 no_keys
}

@test "two commands that lock the same names in different orders both come to an end" {
	local i
	for i in {1..5}; do
		in_background rlock run a b -- true
		in_background rlock run b a -- true
	done
	wait "${BACKGROUND[@]}"
	no_keys
}

@test "a name of many bytes, or of odd ones, is a name" {
	local name
	for name in "$(printf '%512s' '' | tr ' ' x)" 'two words' '*?[a]' $'tab\tand\x01' 'ünï' '{tag}x' 'a}b{' '%s%n'; do
		run -0 rlock run "$name" -- ask_redis "$SERVER_SOCKET" exists "$name"
		assert_output 1
	done
	no_keys
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
	local i rises=0 least=1000 start took
	hold_in_background a -t 1s
	start=$(now_ms)
	mapfile -t left < <(redis -r 400 -i 0.01 pttl a)
	took=$(($(now_ms) - start))
	is_running "$PID"
	for ((i = 1; i < ${#left[@]}; i++)); do
		((left[i] <= left[i - 1])) || ((rises += 1))
		((left[i] >= least)) || least=${left[i]}
	done
	assert_between 200 "$least" 700
	assert_between $((took / 1500)) "$rises" $((took / 300))
	let_go
	wait "$PID"
	no_keys
}

@test "a fixed lease ends the command with status 124, in one line" {
	run -124 rlock run -l 3s a -- until_let_go
	assert_one_message
	assert_output --regexp '^rlock: a: .*lease'
	no_keys
}

@test "a command that ends within its fixed lease releases the lock" {
	run -4 rlock run --lease 10s a -- sh -c 'exit 4'
	assert_output ''
	no_keys
}

@test "nothing renews a fixed lease, and the command is gone before it ends" {
	local -a left
	local i
	# It does not heed SIGTERM, and looks at what is left for as long as it lives.
	# shellcheck disable=SC2016
	run -124 rlock run -l 4s a -- sh -c 'trap "" TERM
		exec redis-cli -s "$SERVER_SOCKET" -r 1000 -i 0.01 pttl a >left'
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
	local most_s=$((86400 - 86)) lease
	# Of 50 minutes it is 3 s. That of a longer lease would be hidden: each hour its renewer looks at the lock's file.
	rlock lock --pid $$ --lease 50m --grace 1ms mine
	wait_until 10 wakes_up_between "$(renewers)" 2900 $((3000 - 4))
	rlock unlock --pid $$ mine
	for lease in --lease --ttl; do
		hold_in_background "name$lease" $lease 24h
		wait_until 10 wakes_up_between "$PID" 86000 $most_s
	done
}

@test "a command with a fixed lease hears SIGTERM while the lock is still held" {
	# shellcheck disable=SC2016
	run -124 rlock run -l 9s a -- bash -c 'trap "echo \${EPOCHREALTIME/./} >heard; exit 0" TERM
		echo "${EPOCHREALTIME/./}" >started
		until_let_go & wait'
	assert_between 300000 $(($(cat heard) - $(cat started))) 8900000
}

# ---- at least ----

@test "a lock with a least time stays taken after the command, and rlock returns at once" {
	local start
	start=$(now_ms)
	run -0 rlock run --at-least 60s a -- true
	assert_output ''
	assert_between 0 $(($(now_ms) - start)) 5000
	assert_between 50000 "$(redis pttl a)" 60000
	run -75 rlock run -n a -- true
}

@test "the least time counts from when the lock was acquired" {
	run -0 rlock run --at-least 30s a -- sleep 0.6
	assert_between 1 "$(redis pttl a)" 29400
}

@test "the least time shortens what the lease had left" {
	run -0 rlock run -t 60s --at-least 20s a -- true
	assert_between 1 "$(redis pttl a)" 20000
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
	# shellcheck disable=SC2016
	run -137 rlock run --at-least 30s b -- sh -c 'kill -KILL $$'
	is_held b
	run -124 rlock run --at-least 30s --max-run 100ms c -- until_let_go
	is_held c
}

@test "a command that takes longer than the least time releases the lock when it ends" {
	run -0 rlock run --at-least 100ms a -- sleep 0.3
	no_keys
}

@test "a least time holds for each of several names" {
	run -0 rlock run --at-least 30s a b -- true
	assert_between 20000 "$(redis pttl a)" 30000
	assert_between 20000 "$(redis pttl b)" 30000
}

@test "the least time of a nested command outlasts the outer command" {
	# shellcheck disable=SC2016
	run -0 rlock run a -- sh -c 'rlock run --at-least 30s a -- true; rlock run -n a -- echo entered'
	assert_output entered
	assert_between 20000 "$(redis pttl a)" 30000
	run -75 rlock run -n a -- true
}

@test "the least time of a nested command that is over keeps the lock no longer than the outer command" {
	run -0 rlock run a -- sh -c 'rlock run --at-least 100ms a -- true; sleep 0.3'
	wait_until 2 no_keys
}

# ---- at most ----

@test "a command that runs too long is stopped, with status 124 and one line" {
	local start
	start=$(now_ms)
	run -124 rlock run --max-run 300ms a -- until_let_go
	assert_between 300 $(($(now_ms) - start)) 10000
	assert_one_message
	assert_output --regexp '^rlock: a: .*300ms'
	no_keys
}

@test "a command that is stopped hears SIGTERM first" {
	# shellcheck disable=SC2016
	run -124 rlock run --max-run 3s --grace 20s a -- sh -c 'trap "touch heard; exit 0" TERM
		until_let_go & wait'
	file_exists heard
}

@test "a command that hears SIGTERM can clean up with other commands until the grace time is over" {
	# shellcheck disable=SC2016
	run -124 rlock run --max-run 3s --grace 20s a -- sh -c '
		trap "for i in 1 2 3 4 5; do sleep 0.05; echo \$? >>cleaned; done; exit 0" TERM
		until_let_go & wait'
	assert_equal "$(sort cleaned | uniq -c | tr -s " ")" ' 5 0'
}

@test "a command that ignores SIGTERM is killed after the grace time" {
	local start
	start=$(now_ms)
	run -124 rlock run --max-run 3s --grace 400ms a -- sh -c 'trap "" TERM; exec until_let_go'
	assert_between 3400 $(($(now_ms) - start)) 15000
}

@test "a command that is in time is not stopped" {
	run -0 rlock run --max-run 20s a -- true
	assert_output ''
}

@test "what a stopped command has started in other sessions is stopped with it" {
	local pid
	# One is a child of the command's; the other one's parent has gone.
	# shellcheck disable=SC2016
	run -124 rlock run --max-run 5s --grace 300ms a -- sh -c '
		setsid until_let_go & echo $! >pids
		setsid sh -c "until_let_go & echo \$! >>pids"
		until_let_go'
	has_lines pids 2
	while read -r pid; do
		is_gone "$pid"
	done <pids
}

@test "what ignores SIGTERM in another session is killed before the lock is released" {
	# shellcheck disable=SC2016
	run -124 rlock run --max-run 5s --grace 300ms a -- sh -c '
		setsid sh -c "trap \"\" TERM; echo \$\$ >pid; exec until_let_go" &
		wait'
	is_gone "$(cat pid)"
	no_keys
}

@test "what a command leaves on purpose when it ends by itself runs on" {
	local pid
	# shellcheck disable=SC2016
	run -0 rlock run a -- sh -c 'until_let_go >/dev/null 2>&1 3>&- & echo $!'
	pid=$output
	BACKGROUND+=("$pid")
	no_keys
	is_running "$pid"
	let_go
	wait_until 5 is_gone "$pid"
}

# ---- what the command sees ----

@test "the command is told the name, the owner and the kind of its lock" {
	# shellcheck disable=SC2016
	run -0 rlock run 'my lock' -- sh -c 'printf "%s\n" "$RLOCK_NAME" "$RLOCK_MODE" "$RLOCK_OWNER"
		ask_redis "$SERVER_SOCKET" hkeys "my lock"'
	assert_line --index 0 'my lock'
	assert_line --index 1 plain
	assert [ -n "${lines[2]}" ]
	assert_equal "${lines[2]}" "${lines[3]}"
}

@test "the command is told several names one a line" {
	run -0 rlock run b a 'c d' -- printenv RLOCK_NAME
	assert_output $'b\na\nc d'
}

@test "a nested command is told of every lock that is held above it" {
	# shellcheck disable=SC2016
	run -0 rlock run 'x y/%' -- sh -c 'echo "$RLOCK_OWNER"
		exec rlock run other -- sh -c "echo \$RLOCK_OWNER; echo \"\$RLOCK_HELD\""'
	assert_equal "${#lines[@]}" 3
	assert_line --index 2 --partial 'x%20y%2F%25'
	assert_line --index 2 --partial other
	assert_line --index 2 --partial "${lines[0]%%:*}"
	assert_line --index 2 --partial "${lines[1]%%:*}"
}

@test "the rest of the caller's environment is as it was" {
	not_under_valgrind 'it adds to the environment'
	local -a caller=("PATH=$PATH" "RLOCK_URL=$RLOCK_URL" $'ODD=two\nlines' 'EMPTY=' 'a b=c' 'RLOCK_MINE=1')
	env -i "${caller[@]}" "$(command -v env)" -0 | sort -z >without
	env -i "${caller[@]}" "$(command -v rlock)" run a -- env -0 |
		grep -zvE '^RLOCK_(NAME|OWNER|MODE|HELD)=' | sort -z >with
	run -0 cmp without with
}

@test "a loop that reads names from standard input loses none of them" {
	local name
	hold_in_background busy
	printf '%s\n' one busy three four >names
	while read -r name; do
		rlock run -q -w 20ms "$name" -- true || :
		echo "$name"
	done <names >seen
	run -0 cmp names seen
}

@test "standard input, output and error are the command's own" {
	run -0 --separate-stderr rlock run a -- sh -c 'cat; echo problem >&2' <<<'some input'
	assert_output 'some input'
	# shellcheck disable=SC2154
	assert_equal "$stderr" problem
}

@test "what the command writes is not changed" {
	head -c 300000 /dev/urandom >bytes
	rlock run a -- cat <bytes >copy
	run -0 cmp bytes copy
}

@test "a command has no file open that it would not have without rlock" {
	# shellcheck disable=SC2016
	local look='for fd in /proc/$$/fd/*; do echo "${fd##*/} $(readlink "$fd")"; done'
	sh -c "$look" >seen 7</dev/null 8>out
	mv seen without
	rlock run a -- sh -c "$look" >seen 7</dev/null 8>out
	assert [ -s seen ]
	run -0 diff <(sed 's/pipe:.*/pipe/' without) <(sed 's/pipe:.*/pipe/' seen)
}

@test "a stream that the caller has closed is closed for the command" {
	# shellcheck disable=SC2016
	local look='set -- /proc/$$/fd/*; echo "${@##*/}" >"$0"'
	bash -c "$look" without <&- >&- 2>&-
	rlock run a -- bash -c "$look" with <&- >&- 2>&-
	run -0 diff without with
}

# signals_with ENV-OPTION...: compares what a command sees of blocked, ignored and caught signals.
signals_with() {
	local -a look=(grep -E '^Sig(Pnd|Blk|Ign|Cgt)' /proc/self/status)
	env "$@" "${look[@]}" >without
	env "$@" rlock run a -- "${look[@]}" >with
	assert [ -s with ]
	run -0 diff without with
}

@test "the command finds no signal blocked or ignored by rlock" {
	signals_with --default-signal
}

@test "what was blocked before is blocked for the command" {
	signals_with --default-signal --block-signal=USR1,TERM,CHLD,WINCH
}

@test "what was ignored before is ignored for the command" {
	signals_with --default-signal --ignore-signal=HUP,INT,QUIT,PIPE,USR2
}

@test "a caller that ignores the end of its children gets the command's status all the same" {
	not_under_valgrind 'it does not pass on that SIGCHLD is ignored'
	signals_with --default-signal --ignore-signal=CHLD
	run -7 env --ignore-signal=CHLD rlock run a -- sh -c 'exit 7'
}

# has_priority PID CLASS NICE
has_priority() {
	local class nice
	read -r class nice <<<"$(ps -o cls=,ni= -p "$1")"
	[ "$class $nice" = "$2 $3" ]
}

# comes_first CLASS NICE COMMAND...: rlock and its renewer have that priority under that command, and what rlock runs
# has its caller's.
comes_first() {
	# shellcheck disable=SC2016
	in_background nice -n 3 "${@:3}" sh -c 'echo $$ >keeper && exec rlock run a -- \
		sh -c "echo \$\$ >command && exec until_let_go"'
	wait_until 10 test -s command
	wait_until 10 has_priority "$(cat keeper)" "$1" "$2"
	wait_until 10 has_renewer "$(cat keeper)"
	wait_until 10 has_priority "$(renewer_of "$(cat keeper)")" "$1" "$2"
	has_priority "$(cat command)" TS $(($(nice) + 3))
}

@test "rlock and its renewer come before all others on a busy machine where they may, and the command does not" {
	chrt --rr 1 true 2>/dev/null || skip 'nobody may come before all others here'
	comes_first RR - env
}

@test "rlock and its renewer have the best nice value where they may not come before all others" {
	[ "$(nice -n -40 nice 2>/dev/null)" = -20 ] || skip 'nobody may have a better nice value here'
	refuse refused rlock sched_setscheduler EPERM 1 true || skip 'no call can be refused here'
	comes_first TS -20 refuse refused rlock sched_setscheduler EPERM 1+
}

@test "the scripts of an uncontended lock run twelve commands on the server" {
	# From here on the server knows the scripts.
	rlock run a -- true
	redis config resetstat >/dev/null
	rlock run a -- true
	run -0 commands_in_scripts
	((output <= 12)) || fail "$output commands"
}

@test "the command is in the caller's process group and session" {
	# shellcheck disable=SC2016
	local groups='ps -o pgid=,sid= -p $$'
	sh -c "$groups" >without
	rlock run a -- sh -c "$groups" >with
	run -0 diff without with
}

@test "the command runs in the caller's directory" {
	run -0 rlock run a -- pwd
	assert_output "$PWD"
}

@test "the command's arguments are not touched by a shell" {
	# shellcheck disable=SC2016
	run -0 rlock run a -- printf '[%s]' '$HOME' '*' '' 'a  b' -n -- --help
	# shellcheck disable=SC2016
	assert_output '[$HOME][*][][a  b][-n][--][--help]'
}
