#!/usr/bin/env bats
# What the command of rlock run sees: the world as it would without rlock, but for what it is told of its lock.

load ../lib/helpers
load ../lib/leftovers

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { patient_teardown; }

@test "the command is told the names, one a line, the owner and the kind of its lock" {
	# shellcheck disable=SC2016
	run -0 rlock run 'my lock' -- sh -c 'printf "%s\n" "$RLOCK_NAME" "$RLOCK_MODE" "$RLOCK_OWNER"
		ask_redis "$SERVER_SOCKET" hkeys "my lock"'
	assert_line --index 0 'my lock'
	assert_line --index 1 plain
	assert [ -n "${lines[2]}" ]
	assert_equal "${lines[2]}" "${lines[3]}"
	run -0 rlock run b a 'c d' -- printenv RLOCK_NAME
	assert_output $'b\na\nc d'
}

@test "a nested command is told of every lock that is held above it" {
	# shellcheck disable=SC2016
	run -0 rlock run 'x y/%' -- sh -c 'echo "$RLOCK_OWNER"
		exec rlock run other -- sh -c "echo \$RLOCK_OWNER; echo \"\$RLOCK_HELD\""'
	assert_equal "${#lines[@]}" 3
	assert_line --index 2 --partial 'x%20y%2F%25'
	assert_line --index 2 --partial other
	assert_line --index 2 --partial "${lines[0]%%:*}"
	assert_line --index 2 --partial "${lines[1]%%:*}"
}

@test "the rest of the caller's environment is as it was" {
	not_under_valgrind 'it adds to the environment'
	local -a caller=("PATH=$PATH" "RLOCK_URL=$RLOCK_URL" $'ODD=two\nlines' 'EMPTY=' 'a b=c' 'RLOCK_MINE=1')
	env -i "${caller[@]}" "$(command -v env)" -0 | sort -z >without
	env -i "${caller[@]}" "$(command -v rlock)" run a -- env -0 |
		grep -zvE '^RLOCK_(NAME|OWNER|MODE|HELD)=' | sort -z >with
	run -0 cmp without with
}

@test "standard input, output and error are the command's own, and what it writes is not changed" {
	run -0 --separate-stderr rlock run a -- sh -c 'cat; echo problem >&2' <<<'some input'
	assert_output 'some input'
	# shellcheck disable=SC2154
	assert_equal "$stderr" problem
	head -c 300000 /dev/urandom >bytes
	rlock run a -- cat <bytes >copy
	run -0 cmp bytes copy
}

@test "a command has no file open that it would not have without rlock" {
	# shellcheck disable=SC2016
	local look='for fd in /proc/$$/fd/*; do echo "${fd##*/} $(readlink "$fd")"; done'
	sh -c "$look" >seen 7</dev/null 8>out
	mv seen without
	rlock run a -- sh -c "$look" >seen 7</dev/null 8>out
	assert [ -s seen ]
	run -0 diff <(sed 's/pipe:.*/pipe/' without) <(sed 's/pipe:.*/pipe/' seen)
}

@test "a stream that the caller has closed is closed for the command" {
	# shellcheck disable=SC2016
	local look='set -- /proc/$$/fd/*; echo "${@##*/}" >"$0"'
	bash -c "$look" without <&- >&- 2>&-
	rlock run a -- bash -c "$look" with <&- >&- 2>&-
	run -0 diff without with
}

# signals_with ENV-OPTION...: compares what a command sees of blocked, ignored and caught signals.
signals_with() {
	local -a look=(grep -E '^(Sig(Pnd|Blk|Ign|Cgt)|ShdPnd)' /proc/self/status)
	env "$@" "${look[@]}" >without
	env "$@" rlock run a -- "${look[@]}" >with
	assert [ -s with ]
	run -0 diff without with
}

@test "the command finds signals blocked and ignored as they were before rlock, and no others" {
	signals_with --default-signal
	signals_with --default-signal --block-signal=USR1,TERM,CHLD,WINCH,PIPE
	signals_with --default-signal --ignore-signal=TERM,INT,HUP,QUIT,USR1,USR2,WINCH,PIPE,ALRM,TSTP,TTIN,TTOU,CONT,URG,XCPU
	run -7 env --block-signal rlock run a -- sh -c 'exit 7'
}

@test "a caller that ignores the end of its children gets the command's status all the same" {
	not_under_valgrind 'it does not pass on that SIGCHLD is ignored'
	signals_with --default-signal --ignore-signal=CHLD
	run -7 env --ignore-signal=CHLD rlock run a -- sh -c 'exit 7'
	no_keys
}

@test "a command is started where no process may share its parent's memory, as below qemu-user" {
	refuse refused rlock clone EINVAL 1 true || skip 'no call can be refused here'
	run -7 refuse refused rlock-renewer clone EINVAL 1 rlock run a -- sh -c 'echo ran; exit 7'
	assert_output ran
	grep -q ^clone refused
	no_keys
	run -71 refuse refused rlock-renewer clone EINVAL 1+ rlock run a -- touch ran
	[ ! -e ran ] || fail 'the command ran'
	no_keys
}

@test "the command is in the caller's process group, session and directory" {
	# shellcheck disable=SC2016
	local groups='ps -o pgid=,sid= -p $$; pwd'
	sh -c "$groups" >without
	rlock run a -- sh -c "$groups" >with
	run -0 diff without with
}

@test "the command's arguments are not touched by a shell" {
	# shellcheck disable=SC2016
	run -0 rlock run a -- printf '[%s]' '$HOME' '*' '' 'a  b' -n -- --help
	# shellcheck disable=SC2016
	assert_output '[$HOME][*][][a  b][-n][--][--help]'
}
