#!/usr/bin/env bats
# What COMMAND of rlock run inherits: the same as without rlock, plus the RLOCK_ variables. And unusual callers: timeout, loops, cron,
# a container, closed streams, an empty environment, a removed directory.

load ../lib/usual
load ../lib/proxying

setup() {
	directory_setup
	RLOCK=$(command -v rlock)
}

teardown() {
	cd /
	teardown_and_check_processes
}

# ---- what the command sees ----

@test "the command's environment has the names, the owner and the kind of its lock, and all locks held above it" {
	run -0 rlock run 'x y/%' 'my lock' -- sh -c 'printf "%s\n" "$RLOCK_NAME" "$RLOCK_MODE" "$RLOCK_OWNER"
		ask_redis "$SERVER_SOCKET" hkeys "my lock"
		exec rlock run other -- sh -c "echo \$RLOCK_OWNER; echo \"\$RLOCK_HELD\""'
	assert_equal "${lines[*]:0:3}" 'x y/% my lock plain'
	assert [ -n "${lines[3]}" ]
	assert_equal "${lines[3]}" "${lines[4]}"
	for word in 'x%20y%2F%25' other "${lines[3]%%:*}" "${lines[6]%%:*}"; do
		assert_line --index 7 --partial "$word"
	done
	for verb in fair read write 'sem --permits 1'; do
		# shellcheck disable=SC2086
		run -0 rlock $verb "${verb%% *}" -- printenv RLOCK_MODE
		assert_output "${verb%% *}"
	done
}

@test "the rest of the caller's environment is unchanged" {
	not_under_valgrind 'it adds to the environment'
	local -a caller=("PATH=$PATH" "RLOCK_URL=$RLOCK_URL" $'ODD=two\nlines' 'EMPTY=' 'a b=c' 'RLOCK_MINE=1')
	env -i "${caller[@]}" "$(command -v env)" -0 | sort -z >without
	env -i "${caller[@]}" "$RLOCK" run a -- env -0 | grep -zvE '^RLOCK_(NAME|OWNER|MODE|HELD)=' | sort -z >with
	run -0 cmp without with
}

@test "the command reads and writes the caller's standard streams, and its output is not changed" {
	head -c 300000 /dev/urandom >bytes
	run -0 --separate-stderr rlock run a -- sh -c 'cat >copy; echo said; echo problem >&2' <bytes
	assert_output said
	assert_equal "$stderr" problem
	run -0 cmp bytes copy
}

# as_without SCRIPT: sh must print the same with rlock as without it, apart from the numbers of pipes.
as_without() {
	sh -c "$1" 7</dev/null 8>out | sed 's/pipe:.*/pipe/' >without
	rlock run a -- sh -c "$1" 7</dev/null 8>out | sed 's/pipe:.*/pipe/' >with
	assert [ -s with ]
	run -0 diff without with
}

@test "a command has the same open files, process group, session and directory as without rlock" {
	as_without 'for fd in /proc/$$/fd/*; do echo "${fd##*/} $(readlink "$fd")"; done'
	as_without 'ps -o pgid=,sid= -p $$; pwd'
}

# signals_with ENV-OPTION...: compares the command's pending, blocked, ignored and caught signals with and without rlock.
signals_with() {
	local -a look=(grep -E '^(Sig(Pnd|Blk|Ign|Cgt)|ShdPnd)' /proc/self/status)
	env "$@" "${look[@]}" >without
	env "$@" rlock run a -- "${look[@]}" >with
	assert [ -s with ]
	run -0 diff without with
	run -7 env "$@" rlock run a -- sh -c 'exit 7'
}

@test "the command inherits the caller's blocked and ignored signals, and no others" {
	signals_with --default-signal
	signals_with --default-signal --block-signal=USR1,TERM,CHLD,WINCH,PIPE
	signals_with --default-signal --ignore-signal=TERM,INT,HUP,QUIT,USR1,USR2,WINCH,PIPE,ALRM,TSTP,TTIN,TTOU,CONT,URG,XCPU
	not_under_valgrind 'it does not pass on that SIGCHLD is ignored'
	signals_with --default-signal --ignore-signal=CHLD
}

@test "a command is started where clone(2) with shared memory fails, as under qemu-user" {
	needs_refuse
	run -7 refuse refused rlock-renewer clone EINVAL 1 rlock run a -- sh -c 'echo ran; exit 7'
	assert_output ran
	grep -q ^clone refused
	run -71 refuse refused rlock-renewer clone EINVAL 1+ rlock run a -- touch ran
	[ ! -e ran ] || fail 'the command ran'
	no_keys
}

@test "the command's arguments do not pass through a shell" {
	run -0 rlock run a -- printf '[%s]' '$HOME' '*' '' 'a  b' -n -- --help
	assert_output '[$HOME][*][][a  b][-n][--][--help]'
}

# ---- shells ----

@test "timeout, a loop that reads standard input, and a pipeline work as without rlock" {
	run -124 timeout 6 rlock run a -- sh -c 'echo $$ >child; sleep 60; exit 1'
	is_gone "$(<child)"
	no_keys
	printf 'one\ntwo\n' >lines
	run -0 sh -c 'while read -r line; do rlock run a -- echo "$line"; done <lines'
	assert_output $'one\ntwo'
	run -0 timeout 20 bash -o pipefail -c 'rlock run a -- cat <lines | cat; rlock run a -- yes | head -n 1; echo "${PIPESTATUS[0]}"'
	assert_output $'one\ntwo\ny\n141'
	no_keys
}

# ---- streams ----

@test "closed standard streams are closed for the command too, and no connection gets their descriptors" {
	local pid fd
	in_background sh -c 'exec rlock run -t 9s a -- sh -c "
		for fd in 0 1 2; do [ ! -e /proc/\$\$/fd/\$fd ] || touch open; done
		run_until_ended; exit 7" <&- >&- 2>&-'
	wait_until 5 is_held a
	await_renewal a 9000
	for pid in "$PID" $(renewer_of "$PID"); do
		for fd in 0 1 2; do
			assert_regex "$(readlink "/proc/$pid/fd/$fd")" '^/'
		done
	done
	end_commands
	ended_with 7
	[ ! -e open ]
	no_keys
}

@test "a closed standard stream for which /dev/null cannot be opened is an error before any connection" {
	needs_refuse
	[ -z "${TESTS_UNDER:-}" ] || skip "$TESTS_UNDER opens files before rlock does"
	run -71 refuse refused rlock openat EMFILE 1 sh -c 'exec rlock run a -- touch ran 0>&-'
	assert_output 'rlock: descriptor 0, 1 or 2 is closed, and cannot open / in its place: Too many open files'
	[ ! -e ran ]
	no_keys
}

@test "standard error on a full disk does not change the status" {
	hold_by_foreign_client a
	run -75 sh -c 'rlock run -w 2s a -- true 2>/dev/full'
	run -0 sh -c 'rlock run -v b -- true 2>/dev/full'
}

# ---- environments and directories ----

@test "with an empty environment rlock looks for the command in the system's default path" {
	run -0 env -i "$RLOCK" run -u "$RLOCK_URL" a -- env
	assert_line RLOCK_NAME=a
	no_keys
}

@test "rlock works in a removed directory, and keeps no directory in use" {
	mkdir there
	run -0 bash -c 'cd there && rmdir ../there && rlock lock --pid $$ a && rlock unlock a; exit'
	hold_in_background b
	wait_until 5 eval '[ "$(readlink "/proc/$(renewer_of "$PID")/cwd")" = / ]'
}

@test "as process 1 of a container rlock exits with the command's status, or 128 + the signal, and passes SIGTERM on" {
	local first=(unshare --fork --pid --mount-proc)
	needs_namespaces
	in_background "${first[@]}" rlock run a -- sh -c 'trap "exit 9" TERM; touch ready; while :; do sleep 0.02; done'
	wait_until 5 file_exists ready
	kill -TERM "$(pgrep -P "$PID")"
	ended_with 9
	wait_until 5 no_keys
	# The kernel does not deliver a fatal signal that process 1 sends to itself. So an rlock that is process 1 must exit with
	# 128 + the signal instead.
	not_under_valgrind 'it takes a fatal signal that the kernel has not delivered for its end'
	run -137 "${first[@]}" --kill-child rlock run a -- sh -c 'kill -KILL $$'
	run -143 "${first[@]}" --kill-child rlock run a -- sh -c 'kill -TERM $$'
	no_keys
}

@test "localhost is the loopback address, also in a container without /etc/hosts" {
	unshare -rm mount --bind /dev/null /etc/hosts 2>/dev/null || skip 'nothing can be mounted here'
	start_proxy tcp:127.0.0.1:0
	RLOCK_URL=redis://localhost:$PROXY_PORT run -0 unshare -rm sh -ec 'mount --bind /dev/null /etc/hosts
		mount --bind /dev/null /etc/resolv.conf
		exec rlock run a -- echo ran'
	assert_output ran
}
