#!/usr/bin/env bats
# rlock run takes turns with others, and what is said of a wait; --complain-after: a line of cron that is silent while the last run is
# merely long, and speaks when it hangs.

# shellcheck disable=SC2034

load ../lib/usual
load ../lib/inspecting

teardown() { patient_teardown; }

# ---- taking turns ----

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

@test "below sudo the holder is known by the user that called it, too" {
	[ "$(id -u)" = 0 ] || skip 'only root is below sudo'
	in_background env LOGNAME=root SUDO_USER=joe rlock run b -- until_let_go
	wait_until 5 is_held b
	run -75 rlock run -w 50ms b -- true
	assert_output --partial "held by root(joe)@$(uname -n) pid $PID until_let_go"
	for user in '' root 'j oe'; do
		run -0 env LOGNAME=root SUDO_USER="$user" rlock run c -- rlock status c
		assert_output --partial " root@$(uname -n) pid "
	done
}

@test "the exit status for a lock that was not acquired can be chosen, and does not hide the command's" {
	run -3 rlock run -n -E 0 a -- sh -c 'exit 3'
	hold_in_background a
	run -0 rlock run -n -E 0 a -- false
	run -255 rlock run --conflict-exit-code 255 -w 50ms a -- true
	assert_one_message
	# Nor does a word of quiet's.
	run -9 rlock run -q -E 9 -w 50ms a -- true
	assert_output ''
}

@test "a verbose caller is told after a second for what and for which holder it waits" {
	hold_in_background a --note 'nightly backup'
	run -75 rlock run -v -w 2s a -- true
	assert_equal "$(grep -c 'waiting for' <<<"$output")" 1
	assert_line --regexp '^rlock: .*a: waiting for nightly backup, held for [0-9.]+s$'
}

@test "on a terminal the progress line comes without being asked for, elsewhere and with quiet it does not" {
	hold_in_background a --note 'nightly backup'
	in_background script -qec "rlock run -q -w 2s a -- true" /dev/null >quiet </dev/null
	in_background rlock run -w 2s a -- true 2>file
	run script -qec "rlock run -w 2s a -- true" /dev/null </dev/null
	assert_line --regexp 'rlock: a: waiting for nightly backup'
	wait "${BACKGROUND[@]:1}" || :
	assert_equal "$(cat quiet)" ''
	run -0 cat file
	assert_one_message
	refute_output --partial waiting
}

@test "on a terminal the waiting line is made anew in its place, and the end of the wait takes it" {
	hold_in_background a --note 'nightly backup'
	in_background env TERM=xterm script -qfec 'rlock run a -- echo done' typescript </dev/null >/dev/null
	wait_until 20 grep -qE 'held for [2-9]s' typescript
	let_go
	wait_until 10 grep -q 'Script done' typescript
	output=$(tr -d '\n' <typescript | sed 's/\x1b/<E>/g; s/\r/<R>/g')
	assert_regex "$output" '<R>rlock: a: waiting for nightly backup, held for [0-9.]+s<R><E>\[Krlock: a: waiting'
	assert_regex "$output" 'held for [0-9.]+s<R><E>\[Krlock: a: acquired after [0-9.]+s<R>done'
}

@test "on a narrow terminal the waiting line has one row, and only the holder is cut" {
	hold_in_background a --note 'a long note, which does not fit into the row of a narrow terminal'
	run -75 env TERM=xterm script -qec 'stty cols 50; exec rlock run -w 1500ms a -- true' /dev/null </dev/null
	assert_line --regexp $'^\rrlock: a: waiting for a long n[^\r]*\.\.\., held for [0-9]s'
	line=$(grep -o 'rlock: a: waiting[^'$'\r'']*' <<<"$output" | head -n 1)
	assert_equal "${#line}" 49
}

@test "a waiter that is not next names the next holder, and does not call the last one dead" {
	in_background rlock run --note 'the first' a -- inside first
	wait_until 5 file_exists in-first
	in_background rlock run --note 'the second' a -- inside second
	wait_until 5 has_waiters a 1
	# In place, each second.
	in_background env TERM=xterm script -qfec 'rlock run a -- true' shown </dev/null >/dev/null
	wait_until 20 grep -q 'waiting for the first' shown
	: >out-first
	wait_until 20 grep -q 'waiting for the second' shown
	let_go
	wait_until 20 grep -q 'acquired after' shown
	run ! grep 'has ended' shown
}

@test "a terminal that cannot erase a line gets whole lines" {
	hold_in_background a --note 'nightly backup'
	run -75 env TERM=dumb script -qec 'rlock run -w 1500ms a -- true' /dev/null </dev/null
	assert_line --regexp $'^rlock: a: waiting for nightly backup, held for [0-9.]+s\r?$'
	refute_output --partial $'\e'
}

@test "in CI the waiting line comes as on a terminal, in whole lines, and the end of the wait" {
	hold_in_background a --note 'nightly backup'
	in_background env CI=true rlock run a -- echo ended >log 2>&1
	wait_until 20 grep -q waiting log
	let_go
	wait_until 10 grep -q ended log
	run -0 cat log
	assert_line --index 0 --regexp '^rlock: a: waiting for nightly backup, held for [0-9.]+s$'
	assert_line --index 1 --regexp '^rlock: a: acquired after [0-9.]+s$'
	refute_output --partial $'\r'
	assert_equal "${#lines[@]}" 3
}

@test "in CI a lock that is free is acquired without a word, and nothing is said where CI is off" {
	run -0 env CI=true rlock run a -- true
	assert_output ''
	hold_in_background a
	for value in '' false; do
		run -75 env CI="$value" rlock run -w 1500ms a -- true
		assert_one_message
		refute_output --partial waiting
	done
	run -75 env CI=true rlock run -q -w 1500ms a -- true
	assert_output ''
}

@test "a holder's bytes reach a terminal escaped" {
	redis hset a $'\e[31mred:1' 1 >/dev/null
	run -75 rlock run -w 50ms a -- true
	assert_one_message
	refute_output --partial $'\e'
	assert_output --partial 'red:1'
}

# ---- many ----

# How many commands the server did for: COMMAND [ARG...].
server_commands_of() {
	local before
	before=$(server_commands)
	"$@" || :
	echo $(($(server_commands) - before - 1))
}

@test "waiting longer does not cost the server more" {
	local short long
	hold_in_background a
	short=$(server_commands_of rlock run -q -w 300ms a -- true)
	long=$(server_commands_of rlock run -q -w 1500ms a -- true)
	assert_between 1 "$short" 50
	assert_equal "$long" "$short"
}

# ---- several names ----

@test "a name of many bytes, or of odd ones, is a name" {
	local name
	for name in "$(printf '%512s' '' | tr ' ' x)" 'two words' '*?[a]' $'tab\tand\x01' 'ünï' '{tag}x' 'a}b{' '%s%n'; do
		run -0 rlock run "$name" -- ask_redis "$SERVER_SOCKET" exists "$name"
		assert_output 1
	done
	no_keys
}

# ---- --complain-after ----

# is_silent CODE ARG...: of an rlock that does not wait.
is_silent() {
	run "-$1" rlock run -n "${@:2}" nightly -- touch ran
	assert_output ''
	refute file_exists ran
}

@test "a holder that has held the lock for less is no reason for a word, and -E counts" {
	hold_in_background nightly
	is_silent 75 --complain-after 1h
	is_silent 0 --complain-after 1h -E 0
	run -0 rlock run -w 0 -E 0 --complain-after 1h nightly -- touch ran
	assert_output ''
}

@test "a holder that has held the lock for that long is named in one line, with 75 whatever -E says" {
	hold_in_background nightly --note 'nightly backup of db1'
	make_older nightly 7380000
	run -75 rlock run -n -E 0 --complain-after 2h nightly -- touch ran
	assert_one_line '^rlock: nightly: busy: held by nightly backup of db1 \([0-9a-f:-]+\) for 2h03m, and --complain-after says 2h: end that job: try: rlock stop nightly$'
	refute file_exists ran
	is_silent 0 -E 0 --complain-after 3h
}

@test "a quiet call complains, too, and flock -n stays silent" {
	hold_in_background nightly
	make_older nightly 7200000
	run -75 rlock run -n -q -E 0 --complain-after 2h nightly -- true
	assert_one_line ' for 2h00m, and '
	printf 'complain-after = 1h\n' >conf
	in_background rlock flock "$PWD/file" until_let_go
	wait_until 5 is_held "$PWD/file"
	make_older "$PWD/file" 7200000
	run -1 env RLOCK_CONFIG="$PWD/conf" rlock flock -n "$PWD/file" true
	assert_output ''
}

@test "a Java holder, whose start is not known, and a lock that --at-least keeps after its job are no reason for a word" {
	held_by_stranger nightly
	is_silent 0 -E 0 --complain-after 0
	redis del nightly >/dev/null
	run -0 rlock run --at-least 1h nightly -- true
	make_older nightly 7200000
	is_silent 0 -E 0 --complain-after 1h
}

@test "of several readers the oldest counts, and of several names the one that is held" {
	local name
	for name in first second third; do
		acquire read "$name" catalog --note "$name"
	done
	make_older catalog 7200000 second
	run -75 rlock write -n -E 0 --complain-after 2h unheld catalog -- true
	assert_one_line '^rlock: catalog: busy: held by second \(second:0\) for 2h00m, and --complain-after says 2h: end that job$'
	run -0 rlock write -n -E 0 --complain-after 3h catalog -- true
	assert_output ''
}

@test "in the configuration file it is for the calls that do not wait" {
	printf 'complain-after = 1h\n' >conf
	hold_in_background nightly
	make_older nightly 7200000
	run -75 env RLOCK_CONFIG="$PWD/conf" rlock run -n -E 0 nightly -- true
	assert_one_line ', and --complain-after says 1h: end that job: try: rlock stop nightly$'
	run -9 env RLOCK_CONFIG="$PWD/conf" rlock run -w 20ms -E 9 nightly -- true
	refute_output --partial complain
}
