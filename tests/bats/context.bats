#!/usr/bin/env bats
# What the command of rlock run sees: the world as it would without rlock, but for what it is told of its lock. And where rlock
# is called from: timeout, loops, cron, a container, with closed streams, without an environment, in a directory that was removed.

load ../lib/usual

setup() {
	directory_setup
	RLOCK=$(command -v rlock)
}

teardown() {
	cd /
	watchful_teardown
}

# ---- what the command sees ----

@test "the command is told the names, one a line, the owner and the kind of its lock" {
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
	local look='for fd in /proc/$$/fd/*; do echo "${fd##*/} $(readlink "$fd")"; done'
	sh -c "$look" >seen 7</dev/null 8>out
	mv seen without
	rlock run a -- sh -c "$look" >seen 7</dev/null 8>out
	assert [ -s seen ]
	run -0 diff <(sed 's/pipe:.*/pipe/' without) <(sed 's/pipe:.*/pipe/' seen)
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
	local groups='ps -o pgid=,sid= -p $$; pwd'
	sh -c "$groups" >without
	rlock run a -- sh -c "$groups" >with
	run -0 diff without with
}

@test "the command's arguments are not touched by a shell" {
	run -0 rlock run a -- printf '[%s]' '$HOME' '*' '' 'a  b' -n -- --help
	assert_output '[$HOME][*][][a  b][-n][--][--help]'
}

# ---- shells ----

@test "timeout ends the command and frees the lock" {
	run -124 timeout 3 rlock run a -- sh -c 'echo $$ >child; sleep 60; exit 1'
	assert [ -s child ]
	is_gone "$(cat child)"
	no_keys
}

@test "a loop keeps its standard input, and a pipeline reads and ends as it would without rlock" {
	printf 'one\ntwo\n' >lines
	run -0 sh -c 'while read -r line; do rlock run a -- echo "$line"; done <lines'
	assert_output $'one\ntwo'
	run -0 timeout 20 bash -c 'rlock run a -- cat <lines | cat'
	assert_output $'one\ntwo'
	run -0 timeout 20 bash -o pipefail -c 'rlock run a -- yes | head -n 1; echo "${PIPESTATUS[0]}"'
	assert_output $'y\n141'
	no_keys
}

# ---- streams ----

@test "with all standard streams closed the command runs, and finds them closed" {
	run -7 bash -c 'rlock run a -- bash -c "
		for fd in 0 1 2; do [ ! -e /proc/\$\$/fd/\$fd ] || echo \$fd >>open; done
		exit 7" <&- >&- 2>&-'
	[ ! -e open ] || run -0 cat open
	[ ! -e open ]
	no_keys
}

@test "a standard stream that is closed, and that nothing can stand in for, is an error before anything else" {
	needs_refuse
	[ -z "${TESTS_UNDER:-}" ] || skip "$TESTS_UNDER opens files before rlock does"
	local fd
	for fd in 0 1; do
		run -71 refuse refused rlock openat EMFILE 1 sh -c "exec rlock run a -- touch ran $fd>&-"
		assert_output 'rlock: descriptor 0, 1 or 2 is closed, and cannot open / in its place: Too many open files'
	done
	run -71 refuse refused rlock openat EMFILE 1 sh -c 'exec rlock lock --owner x --lease 20s a 2>&-'
	[ ! -e ran ]
	no_keys
}

@test "with standard streams closed and no /dev/null, no connection becomes a standard stream" {
	unshare -rm mount -t tmpfs none /mnt 2>/dev/null || skip 'nothing can be mounted here'
	local pid fd
	in_background unshare -rm sh -c 'mount -t tmpfs none /dev &&
		exec rlock run -t 1s a -- sh -c "
			for fd in 0 1 2; do [ ! -e /proc/\$\$/fd/\$fd ] || echo \$fd >>open; done
			exec until_let_go" <&- >&- 2>&-'
	wait_until 5 is_held a
	stays 1.3 is_held a # renewed
	for pid in "$PID" $(renewer_of "$PID"); do
		for fd in 0 1 2; do
			run -0 readlink "/proc/$pid/fd/$fd"
			assert_output /
		done
	done
	let_go
	ended_with 0
	[ ! -e open ]
	no_keys
}

@test "with standard error on a full disk the status is still right" {
	held_by_stranger a
	run -75 sh -c 'rlock run -w 20ms a -- true 2>/dev/full'
	run -0 sh -c 'rlock run -v b -- true 2>/dev/full'
}

# ---- environments ----

@test "with no environment at all rlock runs a command, which is looked for where the system has its programs" {
	run -0 env -i "$RLOCK" run -u "$RLOCK_URL" a -- env
	assert_line RLOCK_NAME=a
	assert_line RLOCK_MODE=plain
	no_keys
}

@test "cron, with a poor environment and without a terminal, gets no mail when the lock is busy, and the file says the rest" {
	mkdir -p .config
	printf 'url = %s\nno-wait = yes\nconflict-exit-code = 0\n' "$RLOCK_URL" >.config/rlock.conf
	local cron=(env -i HOME="$BATS_TEST_TMPDIR" LOGNAME=cron SHELL=/bin/sh PATH="${RLOCK%/*}:/usr/bin:/bin" setsid -w /bin/sh -c)
	run -0 "${cron[@]}" 'rlock run a -- sh -c "echo \$RLOCK_NAME"' </dev/null
	assert_output a
	no_keys
	held_by_stranger a
	run -0 "${cron[@]}" 'rlock run a -- echo ran' </dev/null
	assert_output ''
}

@test "under sudo a lock is a lock" {
	sudo -n true 2>/dev/null || skip 'no sudo without a password here'
	run -7 sudo -n "$RLOCK" run -u "$RLOCK_URL" a -- sh -c 'exit 7'
	run -75 rlock run a -- sudo -n "$RLOCK" run -u "$RLOCK_URL" -n a -- true
	run -0 rlock run a -- sudo -n redis-cli -s "$SERVER_SOCKET" exists a
	assert_output 1
	no_keys
}

# ---- directories ----

@test "in a directory that was removed a script locks and unlocks" {
	mkdir there
	run -0 --separate-stderr bash -c '
		cd there && rmdir ../there && rlock lock --pid $$ a || exit
		$REDIS exists a
		rlock unlock a || exit
		$REDIS exists a
	'
	assert_line -n -2 1
	assert_line -n -1 0
}

@test "the directory of a command can be unmounted or removed once rlock runs elsewhere" {
	mkdir there
	in_background sh -c 'cd there; exec rlock run a -- until_let_go'
	wait_until 5 has_renewer "$PID"
	wait_until 5 is_at / "$(renewer_of "$PID")"
}

is_at() {
	[ "$(readlink "/proc/$2/cwd")" = "$1" ]
}

# ---- containers ----

# A pid namespace in which rlock is process 1.
as_first_process() {
	unshare --fork --pid --mount-proc --kill-child "$@"
}

needs_namespaces() {
	as_first_process true 2>/dev/null || skip 'no pid namespaces here'
}

# For a process 1 that sends itself a signal, which the kernel then leaves out.
needs_mild_signals() {
	not_under_valgrind 'it takes each signal of that kind for the end'
}

@test "as process 1 the command's status is rlock's, and 128 and its number that of a signal" {
	needs_namespaces
	run -7 as_first_process rlock run a -- sh -c 'exit 7'
	needs_mild_signals
	run -137 as_first_process rlock run a -- sh -c 'kill -KILL $$'
	run -143 as_first_process rlock run a -- sh -c 'kill -TERM $$'
	no_keys
}

@test "as process 1 rlock passes SIGTERM on, as a container is stopped" {
	needs_namespaces
	in_background unshare --fork --pid --mount-proc rlock run a -- \
		sh -c 'trap "touch told; exit 9" TERM; touch ready; while :; do sleep 0.02; done'
	wait_until 5 file_exists ready
	kill -TERM "$(pgrep -P "$PID")"
	ended_with 9
	file_exists told
	wait_until 5 no_keys
}
