#!/usr/bin/env bats
# The command line: where options and names may be, and that a mistyped line sends no request. unit/test_usage.c has tables of mistakes and their
# messages; release/help.bats tests the help.

load ../lib/usual

@test "options may stand anywhere between the verb and --, and words after -- are never options" {
	run -0 rlock run a -u "unix://$SERVER_SOCKET" b -n -- echo -n --frobnicate -- -w
	assert_output -- '--frobnicate -- -w'
	POSIXLY_CORRECT=1 run -0 rlock run a -n -- echo -h --help
	assert_output -- '-h --help'
	run -0 rlock run --note=-h a -- echo ran
	assert_output ran
}

@test "names with and without --name are locked in the order of the command line, also with different hash tags" {
	run -0 rlock run '{b}' --name 'the a' -n 'a}' --name=–d 'a{a}' --name 300 -- sh -c 'echo "$RLOCK_NAME"'
	assert_output $'{b}\nthe a\na}\n–d\na{a}\n300'
	run -0 rlock run --name e -- true
	# A number after -n must be taken as a name if no other name follows.
	run -0 rlock run -n 300 -- printenv RLOCK_NAME
	assert_output 300
}

@test "a mistyped line sends no request, and its password is not shown" {
	local before
	before=$(server_commands)
	run -64 rlock run -a sEcReT -h db a -- touch ran
	assert_one_message
	assert_output "rlock: no such option '-a': a password is read by --password-file or --password-command, or from REDISCLI_AUTH"
	assert_equal $(($(server_commands) - before)) 1
	refute file_exists ran
}

@test "an ambiguous line locks nothing, and the corrected line in the message does what was meant" {
	local line corrected
	printf '#!/bin/sh\ntouch ran\n' >job
	chmod +x job
	while read -r line; do
		# shellcheck disable=SC2086
		run -64 rlock $line
		assert_one_message
	done <<-'END'
		lock --lease 1m --owner --wait 1h production
		run --note -n x -- touch ran
		run --log --wait 5s x -- touch ran
		run -w 5 min x -- touch ran
		run --wait=1m 30s x -- touch ran
		lock --pid 1 --ttl 30 s x
		run -n 5m x -- touch ran
		run -n 3 x -- touch ran
		sem -n 1 --permits 3 x -- touch ran
		sem --permits 3 --max 3 x -- touch ran
		check unix:///nowhere
		status redis://127.0.0.1:1
		run redis://127.0.0.1:1 -- touch ran
		mutex x -- touch ran
		mylock touch ran
		lock --pid 1 --on-lost ignore x ./job
		lock --owner ci --lease 1h x y ./job
		lock --owner ci --lease 1h -n 9
		run -n 9 -- touch ran
		run x 10m -- touch ran
		run x 10min -- touch ran
		run 300 x -- touch ran
		run x, y -- touch ran
		run x,y -- touch ran
		run x- -- touch ran
		run [-n] x -- touch ran
		run FOO=1 x -- touch ran
		run nice -n 10 x -- touch ran
		run NAME -- touch ran
		run x -- --wiat 5 touch ran
		run “x” -- touch ran
		run “x y” -- touch ran
		stop x 5
		run --wait x touch ran
		run x -- -n touch ran
		run x touch -- -f ran
		run x-- touch ran
		run x - touch ran
		run x -- touch ran
		run x -- touch ran
		run --unit=x touch ran
		run -k 5 10m x -- touch ran
		run -e FOO=1 x -- touch ran
		run -j 3 x -- touch ran
		run x touch ran -v
		write --exclusive x touch ran
	END
	no_keys
	refute file_exists ran
	for line in 'run -w 5 min x -- touch ran' 'run a touch ran' "run –wait 5 a -- touch ran" 'mylock touch ran' 'run a, b -- touch ran' 'run a,b -- touch ran' \
		'run “a” -- touch ran' 'a run -- touch ran' 'run a -- -w 5 touch ran' 'run -- a touch ran' 'run [-n] a -- touch ran' 'run a touch -- -f ran' \
		'lock --pid $$ a ./job' 'lock --owner ci --lease 1h a ./job' 'run -n 3 a -- touch ran' \
		'run a-- touch ran' 'run a - touch ran' $'run a --\u00a0touch ran' $'run\u00a0a -- touch ran' 'run --unit=a touch ran' 'run -k 5 10m a -- touch ran' \
		'run -e FOO=1 a -- touch ran' 'run -j 3 a -- touch ran' 'run -C . a touch ran' 'run -s KILL 10m a -- touch ran'; do
		rm -f ran
		redis flushall >/dev/null
		# shellcheck disable=SC2086
		run -64 rlock $line
		corrected=${output##*try: }
		run -0 sh -c "$corrected"
		assert file_exists ran
	done
}

@test "of options after a command without --, both meanings are shown, and each line does what it says" {
	run -64 rlock run a ./report -v
	assert_output --regexp "; try: rlock run a -- ./report -v, or with these options for rlock: rlock run a -v -- ./report\$"
	printf '#!/bin/sh\necho "report $*"\n' >report
	chmod +x report
	run -0 rlock run a -- ./report -v
	assert_output 'report -v'
	run -0 --separate-stderr rlock run a -v -- ./report
	assert_output 'report '
	assert_regex "$stderr" 'acquired'
}

@test "a script whose first line lacks env -S gets the right first line; without a script the quotes are the mistake" {
	printf '#!%s run -n job -- sh\ntouch ran\n' "$(command -v rlock)" >script
	chmod +x script
	run -64 ./script
	assert_one_line "^rlock: 'run -n job -- sh' is one word; the first line of a script is #!/usr/bin/env -S rlock run -n job -- sh\$"
	run -64 rlock 'run -n job -- touch ran'
	refute file_exists ran
	run -0 sh -c "${output##*try: }"
	assert file_exists ran
}

@test "a line for another shell has --pid \$\$, not the pid of this one" {
	run -64 sh -c 'rlock lokc --pid $$ a; exit $?'
	assert_output --regexp 'try: rlock lock --pid \$\$ a$'
	run -64 sh -c 'exec rlock lokc --pid $$ a'
	assert_output --regexp 'try: rlock lock --pid \$\$ a$'
	run -64 rlock lokc --pid 1 a
	assert_output --regexp 'try: rlock lock --pid 1 a$'
}

@test "a command that was not found because of a character of a web page or of Windows is shown without it" {
	run -127 rlock run a -- $'touch\r' ran
	assert_output --regexp 'command not found: it contains a carriage return; try: rlock run a -- touch ran$'
	run -127 rlock run a -- $'touch\u00a0ran'
	run -0 sh -c "${output##*try: }"
	assert file_exists ran
}

@test "a name that looks like an option or a URL is accepted with --name" {
	local name
	for name in -x - 5m 3 redis://127.0.0.1:1 local: min; do
		run -0 rlock run -w 5 --name "$name" x -- printenv RLOCK_NAME
		assert_output "$name"$'\nx'
	done
	run -0 rlock run -w 5 min -- printenv RLOCK_NAME
	assert_output min
	run -0 rlock run https://a/b 'job 5' x -- printenv RLOCK_NAME
	assert_output $'https://a/b\njob 5\nx'
	run -0 rlock rlock --name run x -- printenv RLOCK_NAME
	assert_output $'run\nx'
	run -0 rlock rlock run -- printenv RLOCK_NAME
	assert_output run
}

@test "--help precedes everything else and sends no request; --version is that of the library; a failed write is an error" {
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
