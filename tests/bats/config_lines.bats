#!/usr/bin/env bats
# The lines of the configuration file do what is said of options, and a bad one is told with file and line before any
# server is asked. Which lines there can be is in the tables of unit/test_config.c.

load ../lib/helpers
load ../lib/configuring

setup_file() { start_server; }
teardown_file() { stop_server; }
setup() { config_setup; }
teardown() { common_teardown; }

# bad_config LINE TEXT: with the file as it is, one line that names this line and has TEXT in it; 78, and
# the server is not asked anything.
bad_config() {
	local before
	before=$(server_commands)
	run -78 --separate-stderr rlock run a -- touch ran
	assert_equal "$output" ''
	# shellcheck disable=SC2154
	output=$stderr
	refute_output --regexp $'\n'
	assert_output --regexp '^rlock: '
	assert_output --partial "$CONFIG:$1: "
	assert_output --partial -- "$2"
	assert_equal $(($(server_commands) - before)) 1
	refute file_exists ran
}

# ---- what may stand in it ----

@test "blanks, empty lines and comments make no difference" {
	printf '# a comment\n\n   \n\t#another\n  url=%s  \n\tdb\t =  2 \t\n' "$SOCKET_URL" >"$CONFIG"
	locks_in 2
}

@test "each option in the file does what it does on the command line" {
	write_config "url = $SOCKET_URL" 'max-run = 100ms'
	run -124 rlock run a -- until_let_go
	write_config "url = $SOCKET_URL" 'at-least = 20s'
	run -0 rlock run a -- true
	is_held a
	write_config "url = $SOCKET_URL" 'no-wait = yes' 'conflict-exit-code = 0'
	run -0 rlock run a -- false
	assert_output ''
	write_config "url = $SOCKET_URL" 'wait = 20ms' 'quiet = yes'
	run -75 rlock run a -- true
	assert_output ''
	write_config "url = $SOCKET_URL" 'verbose = yes'
	run -0 rlock run b -- true
	refute_output ''
}

@test "options for a command do not disturb a lock without one" {
	write_config "url = $SOCKET_URL" 'at-least = 20s' 'max-run = 1ms' 'kill-child = yes'
	run -0 rlock lock --owner x --lease 20s a
	run -0 rlock unlock --owner x a
	no_keys
}

# ---- a bad line ----

@test "a bad line is told with file and line, and no server is asked anything" {
	write_config "url = $SOCKET_URL" 'frobnicate = 3'
	bad_config 2 frobnicate
	write_config "url = $SOCKET_URL" 'wait = soon'
	bad_config 2 "'soon'"
}
