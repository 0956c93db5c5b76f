#!/usr/bin/env bats
# bats file_tags=long
# rlock flock: the command line of flock(1), for locks named by paths; also as a link called flock.

load ../lib/usual
load ../lib/hold_processes

setup() {
	directory_setup
	mkdir link
	ln -s "$RLOCK_BIN" link/flock
}

# on_other_machine COMMAND [ARG...]: runs COMMAND with other hold files and without inherited locks, as on another machine.
on_other_machine() {
	env -u RLOCK_HELD RLOCK_RUNTIME_DIR="$PWD/there" "$@"
}

# hold_path NAME [OPTION...]: `rlock flock` holds the lock of the path until end_commands. Sets PID. Returns when the command runs.
hold_path() {
	in_background rlock flock "${@:2}" "$1" run_until_ended
	wait_until 10 has_child "$PID" run_until_ended
}

# says STATUS STDOUT STDERR COMMAND [ARG...]: COMMAND must exit with STATUS, and print STDOUT and STDERR.
says() {
	run "-$1" --separate-stderr "${@:4}"
	assert_equal "$output" "$2"
	assert_equal "$stderr" "$3"
}

@test "the lock's name is the path as realpath -m resolves it" {
	local path
	mkdir -p real/inner
	ln -s real/inner short
	ln -s ../missing/../real real/up
	ln -s "$PWD/nowhere" hanging
	ln -s loop loop
	for path in short/../x real/up/./y real//z/ hanging/a/../b . /../.. //tmp//x loop/x nothing/../x; do
		run -0 --separate-stderr rlock flock -v "$path" sh -c 'printf %s "$RLOCK_NAME"'
		assert_equal "$output" "$(realpath -m "$path")"
		assert_regex "$stderr" "$(realpath -m "$path"): acquired after"
	done
}

@test "options end at the name; a conflict is silent, also in CI" {
	says 127 '' "rlock: $PWD/a: --: command not found: COMMAND begins with '--'; leave it out" rlock flock a -- true
	hold_path a
	says 4 '' '' on_other_machine rlock flock -nE3 --conf=4 a true
	CI=1 says 1 '' '' on_other_machine rlock flock --timeo 3.2 a true
	says 1 '' 'flock: failed to get lock' on_other_machine rlock flock --verbose -n a true
	# On a busy machine rlock ends a renewer that got no processor for a second, and says something else: try again then.
	for _ in 1 2 3; do
		run --separate-stderr on_other_machine rlock flock --verb -w 2.01 a true
		[ -z "$stderr" ] || break
	done
	assert_equal "$status|$output|$stderr" '1||flock: timeout while waiting to get lock'
	end_commands
	run -0 --separate-stderr on_other_machine rlock flock --verbose a echo ran
	assert_output --regexp $'^ran\nflock: getting lock took [0-9]+\\.[0-9]{6} seconds\nflock: executing echo$'
	assert_equal "$stderr" ''
}

@test "a shell line given as COMMAND exits with 127, and the corrected line with -c locks the same path" {
	run -127 rlock flock -n job 'echo hi >ran'
	assert_output --regexp "; try: rlock flock -n job -c 'echo hi >ran'\$"
	run -0 sh -c "${output##*try: }"
	assert_equal "$(<ran)" hi
	run -127 rlock flock --verbose "$PWD/a b" cd /
	assert_output --regexp "; try: rlock flock --verbose '$PWD/a b' -c 'cd / && COMMAND'\$"
}

@test "a line with an option of rlock gets the line of rlock that excludes this flock" {
	hold_path a
	run -64 on_other_machine rlock flock -n --max-run 10m a touch ran
	assert_line --index 0 "flock: unrecognized option '--max-run'"
	run -1 on_other_machine sh -c "${output##*try: }"
	end_commands
	run -64 rlock flock -w 10s -s b touch ran
	run -0 sh -c "${output##*try: }"
	assert file_exists ran
}

@test "-c runs a line with the user's shell, or with sh" {
	printf '%s\n' '#!/bin/sh' 'echo "shell $*"' >shell
	chmod +x shell
	SHELL=$PWD/shell says 0 'shell -c a b' '' rlock flock a -c 'a b'
	SHELL='' says 0 /bin/sh '' rlock flock a --command 'echo $0'
}

@test "--help and --version work in any position, and a link called flock is rlock flock" {
	run -0 diff <(rlock flock -n --help) <(rlock help flock)
	run -71 sh -c 'rlock flock --help >/dev/full'
	run -0 link/flock -V
	assert_output --regexp '^flock from rlock [0-9.]+$'
	says 0 'a b' '' link/flock -n a echo 'a b'
	says 64 '' $'flock: invalid file descriptor: \'run\'\nrlock: a command is missing; try: rlock flock run COMMAND' link/flock run
	says 64 '' $'flock: unrecognized option \'--foo\'\nTry \'flock --help\' for more information.' link/flock --foo a true
}

@test "rlock ends with its command, and the renewer holds the lock for leftover processes, running or stopped; not with -o" {
	in_background rlock flock a sh -c 'run_until_ended >/dev/null 2>&1 3>&- & echo $! >left; kill -STOP $!; exit 5'
	ended_with 5
	wait_until 5 is_stopped "$(<left)"
	stays_true_for 0.5 is_stopped "$(<left)"
	says 1 '' '' on_other_machine rlock flock -n a true
	parent_of "$(<left)"
	assert_equal "$(<"/proc/$PARENT/comm")" rlock-renewer
	kill -CONT "$(<left)"
	run -0 rlock flock -o b sh -c 'run_until_ended >/dev/null 2>&1 3>&- & echo $! >left'
	is_free "$(realpath -m b)"
	is_running "$(<left)"
	end_commands
	wait_until 10 is_free "$(realpath -m a)"
	wait_until 10 is_gone "$PARENT"
}

@test "a configuration file names the server, and does not change what flock's options say" {
	cat >conf <<-END
		url = $RLOCK_URL
		wait = 10ms
		conflict-exit-code = 9
		lease = 2s
		at-least = 1h
		max-run = 10ms
		quiet = yes
		fence = yes
		remember = 1h
		note = from the file
	END
	chmod 600 conf
	hold_path a
	in_background env -u RLOCK_URL RLOCK_CONFIG="$PWD/conf" RLOCK_RUNTIME_DIR="$PWD/there" rlock flock a \
		sh -c 'echo >inside; until [ -e out ]; do sleep 0.02; done'
	stays_true_for 0.3 test ! -e inside
	says 1 '' '' on_other_machine env -u RLOCK_URL RLOCK_CONFIG="$PWD/conf" rlock flock -n a true
	end_commands
	wait_until 10 file_exists inside
	run -0 rlock status "$(realpath -m a)"
	assert_output --partial 'from the file'
	ttl_is_above "$(realpath -m a)" 15000
	touch out
	ended_with 0
	is_free "$(realpath -m a)"
	assert_equal "$(redis keys '*rlock_last*')" ''
}

@test "without a server the command does not run, and the status is rlock's; a call within the command re-enters the lock" {
	RLOCK_URL=unix://$PWD/nowhere run -69 rlock flock -n a touch ran
	assert_output --regexp '^rlock: .*nowhere'
	assert [ ! -e ran ]
	says 0 in '' rlock flock a rlock flock -n a echo in
	run -64 rlock flock -s a rlock flock -n a true
	assert_output --partial deadlock
}

@test "rlock stop ends the command of flock, which exits with 124" {
	hold_path a
	run -0 rlock stop "$(realpath -m a)"
	ended_with 124
	is_free "$(realpath -m a)"
}

@test "hundreds of random command lines and scripts do the same with rlock flock and with the machine's flock" {
	local count=300
	[ -z "${RLOCK_LONG_TESTS:-}" ] || count=2000
	mkdir cases
	cd cases
	run -0 flock_differs "$BATS_TEST_TMPDIR/link" "$count" 1
	assert_output "$count are the same"
	wait_until 10 no_keys
}
