#!/usr/bin/env bats
# The shape of a command line: what may stand where, and that what was typed wrongly asks no server. What is said of each
# slip is in the tables of unit/test_usage.c, and the help is the business of help.bats.

# `run` sets what a program said.
# shellcheck disable=SC2154

load ../lib/helpers
load ../lib/refusing

setup_file() { start_counted_server; }
teardown_file() { stop_counted_server; }
setup() { counted_setup; }
teardown() { common_teardown; }

# ---- the shape of a line ----

@test "options may stand anywhere between the verb and the dashes, and what stands behind these is never one" {
	run -0 rlock run a -u "unix://$SERVER_SOCKET" b -n -- echo -n --frobnicate -- -w
	assert_output -- '--frobnicate -- -w'
	POSIXLY_CORRECT=1 run -0 rlock run a -n -- echo -h --help
	assert_output -- '-h --help'
	run -0 rlock run --note -h a -- echo ran
	assert_output ran
}

@test "a number is a name of a lock where no other one follows, and a dash of a web page is one of a name with --name" {
	run -0 rlock run -n -u "unix://$SERVER_SOCKET" 3 -- echo ran
	assert_output ran
	run -0 rlock sem --permits 2 -u "unix://$SERVER_SOCKET" 3 -- echo ran
	assert_output ran
	run -0 rlock run -u "unix://$SERVER_SOCKET" --name –a -- echo ran
	assert_output ran
}

@test "names by --name and without are locked in the order in which they were typed, also with braces that share no keys" {
	run -0 rlock run '{b}' --name 'the a' -u "unix://$SERVER_SOCKET" 'a}' --name=d 'a{a}' -- sh -c 'echo "$RLOCK_NAME"'
	assert_output $'{b}\nthe a\na}\nd\na{a}'
	run -0 rlock run --name e -u "unix://$SERVER_SOCKET" -- true
}

@test "what was typed wrongly asks no server, and the right line is shown, without the password" {
	refused 'try: rlock run -w 3s a -- touch ran' run -w 3s a touch ran
	refused 'try: rlock run -u redis://db:7000 --password-file FILE a -- touch ran' \
		run -h db -p 7000 -a sEcReT a -- touch ran
	refute_output --partial sEcReT
	refused "'x'" run -wx a -- touch ran
}

# ---- help and version ----

@test "help goes before everything else, and does nothing" {
	run -0 rlock run a --help -- touch ran
	assert_line --index 0 --regexp '^usage: rlock run '
	refute file_exists ran
	run -0 rlock unlock --frobnicate --help
}

@test "the version is that of the library's header" {
	local version
	version=$(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' "$BATS_TEST_DIRNAME/../../lib/rlock.h")
	run -0 --separate-stderr rlock --version
	assert_output --regexp "^rlock $version( |$)"
	assert_equal "$stderr" ''
	run -0 diff <(rlock --version) <(rlock version)
	run -0 diff <(rlock --version) <(rlock -V)
}

@test "help and a version that cannot be written are a failure" {
	local words
	for words in 'help run' 'run -h' -h --version; do
		run -71 sh -c "rlock $words >/dev/full"
		assert_output --regexp '^rlock: '
	done
}
