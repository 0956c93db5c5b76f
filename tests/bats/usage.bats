#!/usr/bin/env bats
# What was typed wrongly is told in one line, with status 64, and no server is asked anything: the verb, options, names
# and what does not go together. And what the manual says of the options and the exit codes is what the program has.
# Values of options are tested by usage_values.bats, the help by help.bats.

# `run` sets what a program said.
# shellcheck disable=SC2154

load ../lib/helpers
load ../lib/documenting
load ../lib/refusing

setup_file() { start_counted_server; }
teardown_file() { stop_counted_server; }
setup() { counted_setup; }
teardown() { common_teardown; }

# The options in help's words: "-u --url URL".
options_in_help() {
	rlock help "$1" | sed -nE 's/^  (    |(-.),( ))(--[a-z-]+(\[=[A-Z]+\])?)( [^ ]+)?(  .*)?$/\2\3\4\6/p'
}

# The same from the manual.
options_in_manual() {
	sed -nE '/^\.Sh OPTIONS/,/^\.Sh/s/^\.It (Fl .*)/\1/p' "$BATS_TEST_DIRNAME/../../man/rlock.1" |
		sed -E 's/(^| , )Fl ([a-zA-Z]) , Fl Fl/\1Fl \2 Fl Fl/g; s/ , Fl/\nFl/g' |
		sed -E 's/ Ns Op = Ns Ar (.*)/[=\1]/; s/Fl Fl /--/; s/Fl ([a-zA-Z])/-\1/; s/ (Ar|Cm)//g; s/ \| /|/g'
}

# ---- the shape of a line ----

@test "an unknown verb, or none, is refused" {
	refused 'verb'
	refused frobnicate frobnicate a
	refused "''" ''
}

@test "a command without a verb is refused, and the line with run is shown" {
	refused 'try: rlock run nightly -- touch ran' nightly -- touch ran
	refused "try: rlock run nightly -n 'a b' -- touch ran" nightly -n 'a b' -- touch ran
	refused 'rlock run -n nightly -- touch ran' -n nightly -- touch ran
}

@test "a mistyped verb is refused, and the line with the right one is shown" {
	refused 'try: rlock run a -- touch ran' rnu a -- touch ran
	refused 'try: rlock unlock a' unlok a
}

@test "an option before the verb is refused, and the right line is shown" {
	refused 'rlock run -n -w 3s a -- touch ran' -n -w 3s run a -- touch ran
	refused 'rlock run --note=x a -- touch ran' --note=x run a -- touch ran
	refused 'verb' --no-wait
}

@test "an unknown option is refused by its name" {
	refused --frobnicate run --frobnicate a -- touch ran
	refused --frobnicate run a --frobnicate=3 -- touch ran
	refused -Z run -nZ a -- touch ran
	refused -Z unlock -Z a
	local letter
	for letter in '!' '#' '%' '&'; do
		refused "no such option '-$letter'" run "-$letter" a -- touch ran
	done
}

@test "an option that takes no value is refused with one, by its name" {
	refused '--quiet takes no value' run --quiet=3 a -- touch ran
	refused '--fence takes no value' run --fenc=1 a -- touch ran
}

@test "of a mistyped option the one that was meant is named" {
	refused "no such option '--wiat': try: --wait" run --wiat 3s a -- touch ran
	refused "no such option '--conect-timeout': try: --connect-timeout" unlock --conect-timeout=3s a
	refused "no such option '--tll': see 'rlock help unlock'" unlock --tll 3s a
}

@test "for an option of timeout or flock the one that does the same is named" {
	refused "no such option '--timeout': try: --wait" lock --timeout 3s a
	refused "no such option '--nonblock': try: --no-wait" run --nonblock a -- touch ran
}

@test "an option of another verb is refused" {
	refused --force run --force a -- touch ran
	refused --note unlock --note x a
	refused -w renew -w 3s a
	refused --ttl unlock --ttl 3s a
}

@test "an abbreviation that fits two options is refused" {
	refused --no run --no x a -- touch ran
	refused --con lock --con 5s a
}

@test "an option without its value is refused" {
	refused -w run a -w -- touch ran
	refused --wait run a --wait -- touch ran
	refused -u unlock a -u
}

@test "a value for an option that takes none is refused" {
	refused --no-wait run --no-wait=yes a -- touch ran
	refused --verbose run --verbose=2 a -- touch ran
}

@test "run without a command is refused, and the right line is shown" {
	refused 'rlock run a -- COMMAND' run a
	refused 'rlock run a -- touch ran' run a touch ran
	refused 'rlock run -w 3s a -- touch ran' run -w 3s a touch ran
	refused 'rlock run a -- touch -c ran' run a touch -c ran
	refused 'COMMAND' run a --
	refused "rlock run -n a -- sh -c 'touch ran'" run -n a -c 'touch ran'
}

@test "lock with nothing behind the dashes is refused" {
	refused 'nothing after' lock a --
}

@test "a call without a name is refused" {
	refused name run -- touch ran
	refused name lock
	refused name unlock
	refused name renew
}

@test "a command for a verb that takes none is refused" {
	refused 'rlock unlock a' unlock a -- touch ran
	refused 'rlock renew a' renew a -- touch ran
}

@test "what stands behind the dashes is never taken for an option" {
	run -0 rlock run -u "unix://$SERVER_SOCKET" a -- echo -n --frobnicate -- -w
	assert_output -- '--frobnicate -- -w'
}

@test "options may stand anywhere between the verb and the dashes" {
	run -0 rlock run a -u "unix://$SERVER_SOCKET" b -n -- echo ran
	assert_output ran
	POSIXLY_CORRECT=1 run -0 rlock run a -n -- echo ran
	assert_output ran
}

# ---- names ----

@test "an empty name is refused" {
	refused name run '' -- touch ran
	refused name run a '' -- touch ran
}

@test "a name of more than 512 bytes is refused" {
	refused 512 run "$(printf '%513s' '' | tr ' ' x)" -- touch ran
}

@test "a name with a newline in it is refused" {
	refused newline run $'two\nlines' -- touch ran
}

@test "a name that starts with a dash is refused" {
	refused - run - -- touch ran
	refused -a lock -a
}

@test "a name that is given twice is refused" {
	refused twice run a b a -- touch ran
	refused twice unlock a a
}

@test "two names that share their keys on the server are refused in one call, and both are named" {
	refused "name '{a}': shares its keys on the server with 'a'" run a '{a}' -- touch ran
	refused "name 'a': shares its keys on the server with '{a}'" lock --pid $$ b '{a}' a
	refused "name 'rlock_holds:{a}': shares its keys on the server with 'a'" wlock a 'rlock_holds:{a}' -- touch ran
	refused "name 'a': shares its keys on the server with 'redisson_lock_token:{a}'" \
		fair 'redisson_lock_token:{a}' a -- touch ran
	refused "name '{a}': shares its keys on the server with 'a'" unlock --pid $$ a '{a}'
	run -0 rlock run a '{b}' 'a}' 'a{a}' 'rlock_holds:{c}' -- true
}

@test "a name from a variable is never taken for an option with --name" {
	refused "name '-E0'" run --name -E0 -- touch ran
	refused "name '--owner=x'" lock --name=--owner=x
	refused "name ''" unlock --name ''
	refused "name 'a': given twice" renew --name a a
	refused 'rlock run --name a -- touch ran' run --name a touch ran
	refused 'rlock run --name a -- COMMAND' run --name a
}

@test "names by --name and without are locked in the order in which they were typed" {
	# shellcheck disable=SC2016
	run -0 rlock run b --name 'the a' -u "unix://$SERVER_SOCKET" c --name=d -- sh -c 'echo "$RLOCK_NAME"'
	assert_output $'b\nthe a\nc\nd'
	run -0 rlock run --name e -u "unix://$SERVER_SOCKET" -- true
}

@test "more names than can be locked together are refused" {
	# shellcheck disable=SC2046
	refused 64 run $(seq 65) -- touch ran
	# shellcheck disable=SC2046
	refused 64 run --name a --name b $(seq 63) -- touch ran
}

# ---- what does not go together ----

@test "not to wait and a wait time are refused together" {
	refused --wait run -n -w 3s a -- touch ran
	refused --wait run --wait 3s a --no-wait -- touch ran
	refused --wait lock --pid $$ -nw 3s a
}

@test "a fixed lease and a renewed one are refused together" {
	refused --ttl run -l 3s -t 3s a -- touch ran
	refused --ttl run -t 3s a --lease 3s -- touch ran
}

@test "options for a command are refused where there is none" {
	refused --at-least lock --pid $$ --at-least 3s a
	refused --max-run lock --pid $$ --max-run 3s a
	refused --wait-all lock --pid $$ --wait-all a
	refused --kill-child lock --pid $$ --kill-child a
}

@test "options for a lock without a command are refused where there is one" {
	refused --owner run --owner x a -- touch ran
	refused --owner lock --owner x --lease 5s a -- touch ran
	refused --pid run --pid $$ a -- touch ran
}

@test "to lock for an owner without a lease is refused, and a lease is shown" {
	refused '--lease ' lock --owner x a
	refused '--lease ' lock --owner x --ttl 5s a
}

@test "an owner and a process are refused together" {
	refused --owner lock --owner x --pid $$ --lease 5s a
	refused --owner unlock --owner x --pid $$ a
}

@test "a holder without force is refused" {
	refused --force unlock --holder x a
}

@test "the lock of a process that is not there is refused" {
	sh -c 'echo $$' >pid
	refused "$(cat pid)" lock --pid "$(cat pid)" a
}

# ---- help and version ----

@test "help goes before everything else, and does nothing" {
	run -0 rlock run a --help -- touch ran
	assert_line --index 0 --regexp '^usage: rlock run '
	refute file_exists ran
	run -0 rlock unlock --frobnicate --help
}

@test "help on something that is no verb is refused" {
	refused frobnicate help frobnicate
	refused '' help run lock
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

@test "a version that cannot be written is a failure" {
	run -71 sh -c 'rlock --version >/dev/full'
	assert_output --regexp '^rlock: '
}

@test "the manual has every option that help has, and no other" {
	local verb
	for verb in $(verbs); do
		options_in_help "$verb"
	done | sort -u >help
	options_in_manual | sed '/^-V --version$/d' | sort >manual
	assert [ "$(wc -l <help)" -gt 20 ]
	run -0 diff help manual
}

@test "the manual shows every verb that help has, and no other" {
	verbs | sort >help
	sed -nE '/^\.Sh SYNOPSIS/,/^\.Sh D/s/^\.Cm ([a-z]+( \| [a-z]+)*)$/\1/p; /^\.Sh COM/,/^\.Sh OPT/s/^\.Cm ([rw]lock)$/\1/p' \
		"$BATS_TEST_DIRNAME/../../man/rlock.1" | sed 's/ | /\n/g' | sort >manual
	run -0 diff help manual
}

@test "the manual lists every exit status that the program has" {
	local code
	exit_codes_of_program >codes
	assert [ -s codes ]
	while read -r code; do
		run -0 grep -x "\.It $code" <(sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/p' "$BATS_TEST_DIRNAME/../../man/rlock.1")
	done <codes
}
