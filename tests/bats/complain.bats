#!/usr/bin/env bats
# --complain-after: a line of cron that is silent while the last run is merely long, and speaks when it hangs.

load ../lib/helpers
load ../lib/leftovers
load ../lib/inspecting
load ../lib/refusing

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { patient_teardown; }

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

@test "a holder whose process has ended is told so" {
	hold_in_background nightly
	wait_until 5 has_renewer "$PID"
	kill -KILL "$(renewer_of "$PID")" "$PID"
	wait "$PID" || :
	make_older nightly 7200000
	run -75 rlock run -n -E 0 --complain-after 1h nightly -- true
	assert_one_line ' for 2h00m, and --complain-after says 1h; its process has ended$'
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
