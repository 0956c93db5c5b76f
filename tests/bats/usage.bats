#!/usr/bin/env bats
# The shape of a command line: what may stand where, and that what was typed wrongly asks no server. What is said of each
# slip is in the tables of unit/test_usage.c, and the help is the business of help.bats.

load ../lib/usual

@test "options may stand anywhere between the verb and --, and no word after -- is one" {
	run -0 rlock run a -u "unix://$SERVER_SOCKET" b -n -- echo -n --frobnicate -- -w
	assert_output -- '--frobnicate -- -w'
	POSIXLY_CORRECT=1 run -0 rlock run a -n -- echo -h --help
	assert_output -- '-h --help'
	run -0 rlock run --note -h a -- echo ran
	assert_output ran
}

@test "names by --name and without are locked in the order in which they were typed, also with braces that share no keys" {
	run -0 rlock run '{b}' --name 'the a' -n 'a}' --name=–d 'a{a}' 3 -- sh -c 'echo "$RLOCK_NAME"'
	assert_output $'{b}\nthe a\na}\n–d\na{a}\n3'
	run -0 rlock run --name e -- true
	# A number after -n is one where no other follows.
	run -0 rlock run -n 3 -- printenv RLOCK_NAME
	assert_output 3
}

@test "what was typed wrongly asks no server, and the right line is shown, without the password" {
	local before
	before=$(server_commands)
	run -64 rlock run -h db -p 7000 -a sEcReT a -- touch ran
	assert_one_message
	assert_output --partial 'try: rlock run -u redis://db:7000 --password-file FILE a -- touch ran'
	refute_output --partial sEcReT
	assert_equal $(($(server_commands) - before)) 1
	refute file_exists ran
}

@test "help goes before everything else, and does nothing; the version is the library's; one not written is a failure" {
	local words
	run -0 rlock run a --frobnicate --help -- touch ran
	assert_line --index 0 --regexp '^usage: rlock run '
	refute file_exists ran
	run -0 rlock help help
	assert_line --index 0 --regexp '^usage: rlock '
	run -0 --separate-stderr rlock --version
	assert_output --regexp "^rlock $(sed -n 's/^#define RLOCK_VERSION "\(.*\)"/\1/p' "$TOP/lib/rlock.h")( |$)"
	assert_equal "$output" "$(rlock version)"
	assert_equal "$output" "$(rlock -V)"
	for words in 'help run' 'run -h' -h --version; do
		run -71 sh -c "rlock $words >/dev/full"
		assert_output --regexp '^rlock: '
	done
}
