#!/usr/bin/env bats
# bats file_tags=long
# An operating system that is short of descriptors, memory or processes: rlock exits with 71 and a message, and does not take a process
# or a file that it cannot examine for a missing one.

load ../lib/usual

setup() {
	directory_setup
	not_under_valgrind 'it runs short of descriptors and memory itself'
}

# LEAST: a limit that only allows the standard streams and one descriptor, which the dynamic linker needs. MOST: more descriptors
# than rlock uses.
LEAST=4 MOST=20

# with_descriptors COUNT COMMAND [ARG...]: runs COMMAND with a limit of COUNT descriptors; sets STATUS. Standard error goes to the file
# "stderr".
with_descriptors() {
	STATUS=0
	echo "$*" >&2
	(
		# Close other descriptors that the caller of the tests has left open, since they would count.
		for fd in /proc/self/fd/*; do
			((${fd##*/} < 3)) || eval "exec ${fd##*/}>&-"
		done
		# Switch off the leak sanitizer, which needs descriptors itself.
		export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
		exec timeout -s KILL 30 prlimit --nofile="$1:" "${@:2}" 2>stderr
	) || STATUS=$?
	[ "$STATUS" != 71 ] || [ -n "$TESTS_UNDER" ] || stderr_is_one_line '^rlock: .+: Too many open files$'
}

@test "a lack of descriptors is reported as such, no process of the command escapes, and unlock can be repeated" {
	local count action has_begun=no max_run=300ms
	for ((count = LEAST; count <= MOST; count += 2)); do
		rm -f ledger*
		# With enough descriptors the command must begin, also on a busy machine.
		((count < MOST)) || max_run=2s
		with_descriptors "$count" rlock run --max-run "$max_run" --grace 100ms a -- \
			prlimit --nofile=1024: overlap ledger exclusive -C -u never
		[[ $STATUS = 124 || $STATUS = 71 ]]
		[ ! -e ledger ] || has_begun=yes
		[ "$STATUS" = 71 ] || run -0 overlap -g ledger 0
		no_keys
		rlock lock --pid $$ a
		for action in renew unlock; do
			with_descriptors "$count" rlock "$action" --pid $$ a
			[[ $STATUS = 0 || $STATUS = 71 ]]
		done
		# If unlock fails, it must not have removed the hold file, so that it can be repeated.
		[ "$STATUS" = 0 ] || rlock unlock --pid $$ a
		no_keys
		wait_until 5 no_rlock_runs
	done
	assert_equal "$STATUS" 0
	assert_equal "$has_begun" yes
}

# refused STATUS PROGRAM CALLS ERROR NUMBER COMMAND [ARG...]: COMMAND must exit with STATUS if, in processes called PROGRAM, call
# number NUMBER of the system calls CALLS fails with ERROR. Fails if there was no such call.
refused() {
	rm -f refused
	echo "${*:2}" >&2
	run "-$1" timeout -s KILL 30 refuse refused "${@:2}" 3>&-
	[ -s refused ]
}

@test "a runtime directory that cannot be read completely is an error, not "no lock"" {
	needs_refuse
	rlock lock --pid $$ a
	refused 71 rlock getdents64 ENOMEM 1 rlock renew --pid $$ a
	rlock unlock --pid $$ a
}

@test "renew fails if it cannot store the end of a fixed lease, whichever file cannot be opened" {
	needs_refuse
	[ -z "${TESTS_UNDER:-}" ] || skip "$TESTS_UNDER opens files before rlock does"
	local number=0 before
	rlock lock --pid $$ --lease 1h a
	while
		rm -f refused
		before=$(cat "$RLOCK_RUNTIME_DIR"/hold-*)
		run timeout -s KILL 30 refuse refused rlock openat EIO $((number += 1)) rlock renew --pid $$ a 3>&-
		[ -s refused ]
	do
		[[ $status = 0 || $status = 71 ]]
		[ "$status" = 71 ] || assert_not_equal "$(cat "$RLOCK_RUNTIME_DIR"/hold-*)" "$before"
	done
	((number > 3))
	rlock unlock --pid $$ a
}

@test "leftover processes of a killed command do not count as ended while rlock cannot scan for them" {
	needs_refuse
	local number=0
	while rm -f ledger* && refused 143 rlock-renewer openat ENFILE $((number += 1)) rlock run --grace 100ms a -- bash -c '
			overlap ledger exclusive -i -u never &
			until grep -qs enter ledger; do :; done
			kill -TERM $PPID
			wait'; do
		# Check the status by assert_equal, since `run -143` in a condition would not fail the test.
		assert_equal "$status" 143
		run -0 overlap -g ledger 0
		no_keys
	done
	((number > 3))
}

@test "a kernel or a sandbox without the calls to watch processes is named before anything is locked" {
	needs_refuse
	local needed='needs Linux 5\.3 or later, and no sandbox'
	export RLOCK_URL=unix:///nowhere
	refused 71 rlock pidfd_open ENOSYS 1+ rlock run a -- touch ran
	assert_one_line "^rlock: .* pidfd_open $needed"
	refused 78 rlock pidfd_open ENOSYS 1+ rlock check -u "unix://$SERVER_SOCKET"
	assert_line --regexp "^BAD +kernel +.*$needed"
	refused 71 rlock pidfd_send_signal EPERM 1+ rlock lock --pid $$ a
	assert_one_line "^rlock: .* pidfd_send_signal $needed"
	[ ! -e ran ]
}

@test "a lock for --owner, which has no renewer, does not need the calls to watch processes" {
	needs_refuse
	run -0 refuse refused rlock pidfd_open,pidfd_send_signal ENOSYS 1+ rlock lock --owner job --lease 30s a
	is_held a
	run -0 refuse refused rlock pidfd_open,pidfd_send_signal ENOSYS 1+ rlock unlock --owner job a
	no_keys
}

@test "a command can renew the lock around it where the calls to watch processes are forbidden" {
	needs_refuse
	run -0 rlock run a -- refuse refused rlock pidfd_open,pidfd_send_signal ENOSYS 1+ rlock renew a
	assert_output 30s
}

# with_small_stack STATUS VERB [ARG...]: runs rlock with a stack of 64 KB, the smallest that a limit is likely to allow. It must
# exit with STATUS.
with_small_stack() {
	run "-$1" bash -c 'ulimit -s 64; exec timeout 30 rlock "$@"' - "${@:2}"
}

@test "a stack of 64 KB is enough for all verbs" {
	[ -z "${TESTS_UNDER-}" ] || skip 'sanitize needs a larger stack'
	local note
	note=$(printf 'x%.0s' {1..200})
	with_small_stack 0 run a -- rlock run a -- true
	with_small_stack 124 run --max-run 100ms --log log --log-format json a -- sleep 60
	with_small_stack 0 flock -n f -c true
	with_small_stack 0 sem --permits 2 s -- true
	hold_in_background held --note "$note"
	with_small_stack 0 status held
	with_small_stack 0 status --json held
	with_small_stack 0 list
	with_small_stack 0 list --json
	with_small_stack 0 check
	with_small_stack 75 run -v --note "$note" -w 5s held -- true
	with_small_stack 0 stop held
	with_small_stack 64 run --tll 3s a -- true
	with_small_stack 69 run -u redis+sentinel://localhost:1,localhost:2/none a -- true
	with_small_stack 77 run --password-command 'echo none' a -- true
	rlock lock --pid $$ a
	with_small_stack 0 renew --pid $$ a
	with_small_stack 0 unlock --pid $$ a
	# The front takes over from its renewer, with the same stack limit.
	with_small_stack 0 run -t 60s a -- sh -c 'kill -KILL $PPID; wait_until_true "[ ! -e /proc/$PPID ]"'
	is_free a
}
