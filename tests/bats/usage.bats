#!/usr/bin/env bats
# What was typed wrongly is told in one line, with status 64, and no server is asked anything; and what
# the manual says of the options and the exit codes is what the program has. The help is tested by help.bats.

load ../lib/helpers
load ../lib/documenting

# RLOCK_URL leads to a listener in front of the server, which counts connections.
setup_file() {
	local listening
	start_server
	export CONTROL=unix:$BATS_FILE_TMPDIR/control
	faultproxy tcp:127.0.0.1:0 "unix:$SERVER_SOCKET" "$CONTROL" >"$BATS_FILE_TMPDIR/proxy" 3>&- &
	export PROXY_PID=$!
	wait_until 10 grep -q '^ready' "$BATS_FILE_TMPDIR/proxy"
	read -r _ listening <"$BATS_FILE_TMPDIR/proxy"
	export LISTENER=${listening#tcp:}
	export RLOCK_URL=redis://$LISTENER
}
teardown_file() {
	kill "$PROXY_PID"
	wait "$PROXY_PID" 2>/dev/null || :
	stop_server
}
setup() {
	common_setup
	cd "$BATS_TEST_TMPDIR" || return
	faultproxy -c "$CONTROL" reset-count >/dev/null
}
teardown() { common_teardown; }

# ---- helpers ----

# refused TEXT ARGUMENT...: status 64, nothing on standard output, one line on standard error that has
# TEXT in it, and no command started, no connection made, no command done by the server.
refused() {
	local text=$1 before
	shift
	before=$(server_commands)
	run -64 --separate-stderr rlock "$@"
	assert_equal "$output" ''
	# shellcheck disable=SC2154
	output=$stderr
	refute_output --regexp $'\n'
	assert_output --regexp '^rlock: .'
	assert_output --partial -- "$text"
	assert_equal $(($(server_commands) - before)) 1
	assert_equal "$(faultproxy -c "$CONTROL" count | cut -d ' ' -f 1-2)" 'connections=0 requests=0'
	refute file_exists ran
}

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

# ---- durations ----

@test "a text that is no duration is refused, repeated, and an example is shown" {
	local value
	for value in '' x 1x 1.2.3 -1 -1s +1 0x10 1e3 ' 1' '1 s' 1h30m inf nan . s 1,5s; do
		refused "'$value'" run "--wait=$value" a -- touch ran
		assert_output --regexp '--wait .*30s'
	done
}

@test "every option that takes a duration refuses what is none" {
	local option
	for option in --ttl --lease --at-least --max-run --grace --connect-timeout; do
		refused "'-1'" run "$option=-1" a -- touch ran
		assert_output --regexp "$option .*30s"
		refused "''" run "$option=" a -- touch ran
	done
	refused "'x'" renew --owner x --lease x a
}

@test "a duration beyond all bounds is refused" {
	refused 99999999999999999999 run -w 99999999999999999999 a -- touch ran
	refused 9223372036854775807ms run -t 9223372036854775807ms a -- touch ran
	refused 4000000d run --at-least 4000000d a -- touch ran
}

@test "a lease of less than a second is refused" {
	refused 999ms run -t 999ms a -- touch ran
	assert_output --partial 1s
	refused 0.5 run -l 0.5 a -- touch ran
	refused "'0'" lock --owner x --lease 0 a
	refused 999ms renew --owner x --lease 999ms a
}

@test "a short option's wrong value is refused as the long one's" {
	refused "'x'" run -wx a -- touch ran
	refused "'x'" run -nt x a -- touch ran
}

# ---- other values ----

@test "an exit status that is no number from 0 to 255 is refused" {
	local value
	for value in 256 -1 x '' 0x10 5KB 1.5 ' 1' 99999999999999999999; do
		refused "'$value'" run "--conflict-exit-code=$value" a -- touch ran
	done
	refused "'256'" run -E 256 a -- touch ran
}

@test "an unknown answer to a lost lock is refused" {
	refused "'stop'" run --on-lost stop a -- touch ran
	refused term run --on-lost '' a -- touch ran
}

@test "an owner that is no plain word is refused" {
	local value
	for value in '' 'a b' a:0 ä 'a/b' $'a\nb' "$(printf '%129s' '' | tr ' ' x)"; do
		refused --owner lock --owner "$value" --lease 5s a
	done
}

@test "a process id that cannot be one is refused" {
	local value
	for value in '' 0 -1 x 1.5 99999999999999999999; do
		refused "'$value'" lock "--pid=$value" a
	done
}

@test "a note that is not one line is refused" {
	refused --note run --note $'two\nlines' a -- touch ran
	refused --note run --note "$(printf '%256s' '' | tr ' ' x)" a -- touch ran
	refused --note run --note '' a -- touch ran
}

@test "a database that is no number is refused" {
	local value
	for value in '' x -1 1.5 0x1 99999999999999999999; do
		refused "'$value'" run "--db=$value" a -- touch ran
	done
}

@test "a holder that cannot be one is refused" {
	refused --holder unlock --force --holder '' a
}

@test "a place for the log that is none, and an unknown format, are refused" {
	refused --log run --log '' a -- touch ran
	refused --log run --log - a -- touch ran
	refused --log-format run --log stderr --log-format yaml a -- touch ran
}

@test "a format of a log that there is not is refused" {
	refused --log-format run --log-format json a -- touch ran
}

@test "an empty name of a file is refused" {
	refused --password-file run --password-file '' a -- touch ran
	refused --config run --config '' a -- touch ran
}

# ---- URLs ----

# bad_url TEXT URL...
bad_url() {
	local text=$1 url
	shift
	for url; do
		refused "$text" run -u "$url" a -- touch ran
		assert_output --partial -- --url
	done
}

@test "an empty URL is refused" {
	refused --url run -u '' a -- touch ran
	refused --url run --url= a -- touch ran
	RLOCK_URL='' refused RLOCK_URL run a -- touch ran
}

@test "a URL with an unknown scheme, or without one, is refused" {
	bad_url scheme http://localhost localhost:6379 localhost "//$LISTENER" "tcp://$LISTENER"
	bad_url redis redis redis:localhost redis:/localhost
}

@test "a URL without a host is refused" {
	bad_url host redis:// redis:///0 redis://:6379 redis://user@
}

@test "a URL with a bad port is refused" {
	bad_url port redis://localhost:x redis://localhost:0 redis://localhost:65536 redis://localhost:-1 \
		redis://localhost: 'redis://[::1]:x' redis://localhost:99999999999999999999
}

@test "a URL with a malformed address is refused" {
	bad_url '' 'redis://[::1' 'redis://[::1]6379' redis://::1 'redis://[localhost]' 'redis://two words'
}

@test "a URL with a bad database is refused" {
	bad_url database redis://localhost/x redis://localhost/-1 redis://localhost/1/2 \
		'unix:///run/redis.sock?db=x' redis://localhost/99999999999999999999
}

@test "a URL with something unknown in it is refused" {
	bad_url '' 'redis://localhost?frobnicate=1' 'redis://localhost/0#x' 'unix:///s?port=1' 'local:x'
}

@test "a URL of a socket without an absolute path is refused" {
	bad_url socket unix:// unix://run/redis.sock unix:///
}

@test "a URL with a malformed percent-encoding is refused" {
	bad_url % 'redis://user:%@localhost' 'redis://user:%zz@localhost' 'redis://user:%4@localhost'
}

@test "a bad URL in the environment is told as the environment's" {
	RLOCK_URL=http://localhost refused RLOCK_URL run a -- touch ran
}

@test "a database that is given twice is refused" {
	refused database run -u redis://localhost/3 --db 3 a -- touch ran
	refused database run --db 3 -u 'unix:///run/redis.sock?db=3' a -- touch ran
	refused database run -u 'unix:///run/redis.sock?db=3&db=3' a -- touch ran
}

@test "a server that is given twice is refused" {
	refused server run -u "redis://$LISTENER" -u "redis://$LISTENER" a -- touch ran
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
