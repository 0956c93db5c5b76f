#!/usr/bin/env bats
# The lines of the configuration file: what may stand in one, what it does, and that a bad one is told with file and
# line before any server is asked.

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

# options_of VERB...: the long names of their options, without the dashes, one a line.
options_of() {
	local verb
	for verb; do
		rlock help "$verb" | grep -oE '^ +(-., )?--[a-z-]+' | sed 's/.*--//'
	done | sort -u
}

# ---- what may stand in it ----

@test "blanks, empty lines and comments make no difference" {
	printf '# a comment\n\n   \n\t#another\n  url=%s  \n\tdb\t =  2 \t\n' "$SOCKET_URL" >"$CONFIG"
	locks_in 2
}

@test "the last line needs no newline, and lines may end as on other systems" {
	printf 'url = %s\r\ndb = 2' "$SOCKET_URL" >"$CONFIG"
	locks_in 2
}

@test "a comment may be long, and a line that is none may not" {
	{
		printf '# %65000d\n  #%20000d\n' 0 0
		echo "url = $SOCKET_URL?db=2"
	} >"$CONFIG"
	locks_in 2
	printf 'note = %20000d\n' 0 >>"$CONFIG"
	bad_config 4 'the line is too long'
}

@test "an empty file, and one of comments alone, say nothing" {
	: >"$CONFIG"
	RLOCK_URL=$SOCKET_URL locks_in 0
	write_config '# url = redis://nowhere'
	RLOCK_URL=$SOCKET_URL locks_in 0
}

@test "a value may have blanks and equals signs in it" {
	write_config "url = $SOCKET_URL" 'note = a = b  c'
	hold_in_background a
	run -75 rlock run -w 20ms a -- true
	assert_output --partial 'a = b  c'
}

@test "every option that help shows can stand in the file, but for those of a single call" {
	local option value
	local -A values=([url]=$SOCKET_URL [wait]=3s [conflict-exit-code]=3 [ttl]=3s [lease]=3s [at-least]=1ms
		[max-run]=3s [grace]=3s [on-lost]=term [note]=x [db]=0 [connect-timeout]=3s
		[password-file]=/no/such/file [password-command]=true [quorum]=all [replicas]=0 [log]=log [log-format]=json)
	options_of run lock unlock renew >options
	assert [ "$(wc -l <options)" -gt 20 ]
	while read -r option; do
		case $option in config | force | help | holder | mode | name | owner | pid) continue ;; esac
		# The fuzzer knows it, too.
		grep -q "^\"$option = " "$BATS_TEST_DIRNAME/../fuzz/config.dict"
		value=${values[$option]:-yes}
		write_config "$option = $value"
		# These cannot do anything here: the server has no password.
		[[ $option == password-* ]] || run -0 rlock run -u "$SOCKET_URL" a -- true
		write_config "url = $SOCKET_URL" "$option ="
		bad_config 2 "$option"
	done <options
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

@test "no for an option that takes no value is as if it did not stand there" {
	write_config "url = $SOCKET_URL" 'no-wait = no' 'quiet = no' 'verbose = no' 'kill-child = no'
	redis hset a x:1 1 >/dev/null
	run -75 rlock run -w 20ms a -- true
	assert_equal "${#lines[@]}" 1
}

@test "options for a command do not disturb a lock without one" {
	write_config "url = $SOCKET_URL" 'at-least = 20s' 'max-run = 1ms' 'kill-child = yes'
	run -0 rlock lock --owner x --lease 20s a
	run -0 rlock unlock --owner x a
	no_keys
}

@test "options of another verb do not disturb" {
	write_config "url = $SOCKET_URL" 'ttl = 20s' 'wait = 3s' 'note = x'
	run -0 rlock lock --owner x --lease 20s a
	run -0 rlock renew --owner x --lease 20s a
	run -0 rlock unlock --owner x a
}

# ---- a bad line ----

@test "a line that is no option is told with file and line" {
	write_config '# comment' "url = $SOCKET_URL" 'frobnicate'
	bad_config 3 "option = value"
	write_config '' '= 3'
	bad_config 2 option
}

@test "an unknown option is told with file and line" {
	write_config "url = $SOCKET_URL" 'frobnicate = 3'
	bad_config 2 frobnicate
	write_config "url = $SOCKET_URL" '--wait = 3s'
	bad_config 2 --wait
	write_config 'w = 3s'
	bad_config 1 w
	write_config 'no-wai = yes'
	bad_config 1 no-wai
	write_config 'No-Wait = yes'
	bad_config 1 No-Wait
}

@test "of a mistyped option the one that was meant is named, and its value is not repeated" {
	write_config 'pasword-file = sEcReT'
	bad_config 1 'try: password-file'
	refute_output --partial sEcReT
	write_config 'password_file = sEcReT'
	bad_config 1 'try: password-file'
	refute_output --partial sEcReT
	write_config 'password = sEcReT'
	bad_config 1 'try: password-file'
	refute_output --partial sEcReT
	write_config 'timeout = 3s'
	bad_config 1 'try: wait'
}

@test "an option that belongs to a single call is told with file and line" {
	local option
	for option in name owner pid mode force holder config help; do
		write_config "url = $SOCKET_URL" "$option = x"
		bad_config 2 "$option"
	done
}

@test "rlock.conf(5) lists the options that belong to a single call" {
	local option
	for option in $(options_of run sem unlock renew status list check); do
		write_config "$option = x"
		run rlock check
		[[ "$output" != *'only for the command line'* ]] || echo "$option"
	done >refused
	run -0 diff refused <(sed -n '/belong to a single call/,/^An option/s/^\.Cm //p' "$BATS_TEST_DIRNAME/../../man/rlock.conf.5" |
		tr -d ' .' | tr ',' '\n' | sort)
}

@test "a wrong value is told with file and line" {
	write_config 'wait = soon'
	bad_config 1 "'soon'"
	write_config '' 'ttl = 10ms'
	bad_config 2 "'10ms'"
	write_config 'url ='
	bad_config 1 url
	write_config 'url = http://localhost'
	bad_config 1 http
	write_config 'conflict-exit-code = 256'
	bad_config 1 "'256'"
}

@test "what is neither yes nor no is told with file and line" {
	local value
	for value in true 1 Yes '' on; do
		write_config "url = $SOCKET_URL" "no-wait = $value"
		bad_config 2 no-wait
	done
}

@test "an option that stands there twice is told with file and line" {
	write_config 'ttl = 3s' "url = $SOCKET_URL" 'ttl = 4s'
	bad_config 3 ttl
	write_config 'no-wait = yes' 'no-wait = no'
	bad_config 2 no-wait
	write_config "url = $SOCKET_URL" 'db = 0' 'db = 0'
	bad_config 3 db
}

@test "options that do not go together are told with file and line" {
	write_config "url = $SOCKET_URL" 'no-wait = yes' 'wait = 3s'
	bad_config 3 wait
	write_config 'lease = 3s' 'ttl = 3s'
	bad_config 2 ttl
	write_config "url = $SOCKET_URL?db=2" 'db = 2'
	bad_config 2 db
}

@test "a bad line is told even where the command line says better" {
	write_config "url = $SOCKET_URL" 'ttl = soon'
	run -78 rlock run -t 3s a -- true
	assert_output --partial "$CONFIG:2: "
}

@test "a bad value in the environment is the user's mistake, not the file's" {
	write_config "url = $SOCKET_URL"
	RLOCK_URL=http://localhost run -64 rlock run a -- true
	assert_equal "${#lines[@]}" 1
	assert_output --partial RLOCK_URL
}

@test "a file that is no text is refused" {
	printf 'url = %s\nttl = 3\0s\n' "$SOCKET_URL" >"$CONFIG"
	bad_config 2 NUL
	head -c 200000 /dev/zero | tr '\0' x >"$CONFIG"
	run -78 rlock run a -- true
	assert_equal "${#lines[@]}" 1
}
