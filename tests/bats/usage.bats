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

# ---- what other programs have ----

@test "the options of flock are refused, and the right line is shown" {
	refused 'try: rlock read a -- touch ran' run -s a -- touch ran
	refused 'try: rlock read -n a -- touch ran' run --shared -n a touch ran
	local option
	for option in -x -e -o -F --exclusive --close --no-fork; do
		refused "no such option '$option'" run "$option" a -- touch ran
		assert_output --partial 'try: rlock run a -- touch ran'
		refused 'try: rlock run -w 3 a -- touch ran' "$option" -w 3 a touch ran
	done
	refused "try: rlock run -n a -- sh -c 'touch ran'" -n a -c 'touch ran'
	refused "try: rlock run a -- sh -c 'touch ran'" run -x a -c 'touch ran'
	refused 'try: rlock read a -- touch ran' -s a touch ran
}

@test "a line as flock has it, without a verb and dashes, is refused, and the right one is shown" {
	refused 'try: rlock run /tmp/a -- touch ran' /tmp/a touch ran
	refused 'try: rlock run -n /tmp/a -- touch ran' -n /tmp/a touch ran
	refused 'try: rlock run /tmp/a -- ./job' /tmp/a ./job
}

@test "a line as consul has it is refused, and the right one is shown" {
	refused 'try: rlock run a -- touch ran' lock a touch ran
	refused 'try: rlock sem --permits 3 a -- touch ran' lock -n 3 a touch ran
	refused 'try: rlock sem --permits 3 a -- touch ran' run -n 3 a -- touch ran
	refused 'try: rlock run --wait 10m a -- touch ran' run -timeout=10m a -- touch ran
	refused 'try: rlock run --wait 10m a -- touch ran' lock -timeout 10m a touch ran
}

@test "a number is a name of a lock where no other one follows" {
	run -0 rlock run -n -u "unix://$SERVER_SOCKET" 3 -- echo ran
	assert_output ran
	run -0 rlock sem --permits 2 -u "unix://$SERVER_SOCKET" 3 -- echo ran
	assert_output ran
}

@test "the server as redis-cli has it is refused, and the right line is shown, without the password" {
	refused 'try: rlock run -u redis://db:7000 --password-file FILE a -- touch ran' \
		run -h db -p 7000 -a sEcReT a -- touch ran
	refute_output --partial sEcReT
	refused 'try: rlock run -u redis://db:6379 a -- touch ran' run -h db a touch ran
	refused 'try: rlock unlock -u redis://db:6379 a' unlock -h db -p 6379 a
	refused 'try: rlock run -u rediss://me@127.0.0.1:7000 a -- touch ran' run --port 7000 --user me --tls a -- touch ran
	refused 'try: rlock run -u redis://db:6379 a -- touch ran' -h db run a -- touch ran
	local words
	for words in '-a sEcReT' '--pass sEcReT' '--pass=sEcReT' '--password sEcReT' '--password=sEcReT'; do
		# shellcheck disable=SC2086
		refused 'try: rlock run --password-file FILE a -- touch ran' run $words a -- touch ran
		refute_output --partial sEcReT
		# shellcheck disable=SC2086
		refused 'run' $words run a -- touch ran
		refute_output --partial sEcReT
		# shellcheck disable=SC2086
		refused "needs a command after '--'" run a redis-cli $words ping
		refute_output --partial sEcReT
	done
	refused 'try: rlock run a -- cp -a from to' run a cp -a from to
}

@test "a verb of another program is refused, and the right line is shown" {
	refused 'try: rlock list a' ls a
	refused 'try: rlock status a' info a
	refused 'try: rlock unlock a' release a
	refused 'try: rlock unlock --force a' break a
	refused 'try: rlock renew a' extend a
	refused "try: rlock lock --pid \$\$ a" acquire a
	local verb
	for verb in acquire with exec; do
		refused "'$verb' is not a verb" "$verb" a -- touch ran
		assert_output --partial 'try: rlock run a -- touch ran'
		refused 'try: rlock run a -- touch ran' "$verb" a touch ran
	done
	refused 'try: rlock run a -- COMMAND' exec a
	refused 'try: rlock unlock --force a' unlock -f a
}

@test "the number of permits without its option is refused, and the right line is shown" {
	refused 'try: rlock sem --permits 3 a -- touch ran' sem -n 3 a -- touch ran
	refused 'try: rlock sem --permits 3 a -- touch ran' sem 3 a touch ran
}

@test "the time of --watch without '=' is refused, and the right line is shown" {
	refused 'try: rlock status --watch=5 a' status --watch 5 a
}

@test "a dash of a web page is refused, and the line with '-' is shown" {
	refused 'try: rlock run --wait 5 a -- touch ran' run –wait 5 a -- touch ran
	refused 'try: rlock run a -n -- touch ran' run a –n -- touch ran
	refused 'try: rlock run a -- touch ran' run a — touch ran
	refused 'try: rlock unlock --force a' unlock ‐‐force a
	run -0 rlock run -u "unix://$SERVER_SOCKET" --name –a -- echo ran
	assert_output ran
}

@test "an owner with the thread that status shows is refused, and the ID is shown" {
	refused 'try: ci-1' lock --owner ci-1:0 --lease 5s a
	refused 'try: ci-1' unlock --owner ci-1:12 a
}

@test "a URL's scheme of another program is refused, and rlock's is shown" {
	refused 'redis+sentinel://HOST:26379/SERVICE' run -u redis-sentinel://db/main a -- touch ran
	refused 'redis+sentinel://HOST:26379/SERVICE' run -u sentinel://db/main a -- touch ran
	refused 'redis+cluster://HOST:6379' run -u redis-cluster://db a -- touch ran
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
