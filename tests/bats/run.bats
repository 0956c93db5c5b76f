#!/usr/bin/env bats
# rlock run: the lock is held while the command runs, what the command ends with is what rlock ends
# with, and a command that cannot run is told of. The files run_*.bats have the rest.

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

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
	# shellcheck disable=SC2016
	run how_it_ended rlock run a -- sh -c 'kill -KILL $$'
	assert_output --partial Killed
	# shellcheck disable=SC2016
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
	assert_one_message
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

@test "a file that another user may execute is told as such" {
	local file=$BATS_TEST_TMPDIR/theirs
	echo '#!/bin/sh' >"$file"
	chmod 611 "$file"
	as_other_user test -e "$file" || skip 'only root can be another user'
	chmod 644 "$file"
	chmod u+x "$file"
	run -126 as_other_user "$RLOCK_BIN" run a -- "$file"
	assert_output "rlock: a: cannot run $file: Permission denied: its mode allows other users to run it, or its file \
system is mounted with noexec"
}

# With access to the directories of the tests.
as_other_user() {
	setpriv --reuid=4711 --regid=4711 --clear-groups --inh-caps=+dac_read_search \
		--ambient-caps=+dac_read_search "$@" 2>&1
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
