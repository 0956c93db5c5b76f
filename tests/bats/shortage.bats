#!/usr/bin/env bats
# bats file_tags=long
# An operating system that is short of descriptors, memory or processes: rlock says so, by 71 and a line, and
# what it can't look at at the moment it does not take for gone.

load ../lib/usual

setup() {
	directory_setup
	not_under_valgrind 'it runs short itself'
	export NAME=a
}

# Standard streams, and what the dynamic linker takes to begin; and more than rlock ever has.
LEAST=4 MOST=20

# with_descriptors COUNT COMMAND [ARG...]: sets STATUS; what was said is in the file "said".
with_descriptors() {
	STATUS=0
	(
		# What a caller of the tests has left open would take some of them.
		for fd in /proc/self/fd/*; do
			((${fd##*/} < 3)) || eval "exec ${fd##*/}>&-"
		done
		# To look for leaks takes some, too.
		export ASAN_OPTIONS=${ASAN_OPTIONS-}:detect_leaks=0
		exec timeout -s KILL 10 prlimit --nofile="$1:" "${@:2}" 2>said
	) || STATUS=$?
}

# ended_by COUNT STATUS...
ended_by() {
	[[ " ${*:2} " = *" $STATUS "* ]] || fail "with $1 descriptors it ended by $STATUS: $(cat said)"
}

@test "unlock and renew without descriptors say so, and can be repeated: the lock's file is still there" {
	local count
	for ((count = LEAST; count <= MOST; count += 4)); do
		rlock lock --pid $$ a
		with_descriptors "$count" rlock renew --pid $$ a
		ended_by "$count" 0 71
		with_descriptors "$count" rlock unlock --pid $$ a
		ended_by "$count" 0 71
		# A sanitizer has its own words.
		[ "$STATUS" = 0 ] || [ -n "$TESTS_UNDER" ] || has_lines said 1 || fail "with $count descriptors: $(cat said)"
		[ "$STATUS" = 0 ] || rlock unlock --pid $$ a || fail "with $count descriptors the hold file was lost"
		no_keys
		nothing_runs
	done
	assert_equal "$STATUS" 0
}

@test "a lack of descriptors is called that" {
	local count
	for ((count = LEAST; count <= MOST; count += 2)); do
		with_descriptors "$count" rlock run a -- true
		ended_by "$count" 0 71
		[ "$STATUS" = 0 ] || grep -qE '^rlock: .+: Too many open files$' said || fail "with $count descriptors: $(cat said)"
	done
	assert_equal "$STATUS" 0
	no_keys
}

@test "with few descriptors a command that is stopped is stopped whole" {
	local count
	for ((count = LEAST; count <= MOST; count += 2)); do
		rm -f ledger*
		with_descriptors "$count" rlock run --max-run 100ms --grace 100ms a -- \
			prlimit --nofile=1024: overlap ledger exclusive -C -u never
		ended_by "$count" 124 71
		[ "$STATUS" = 71 ] || run -0 overlap -g ledger 0
		no_keys
	done
	assert_equal "$STATUS" 124
}

# ---- a call at a time ----

# refused CALLS ERROR NUMBER COMMAND [ARG...]: of the programs whose names begin with OF; fails when there was no such call any
# more. Sets STATUS.
OF=rlock
refused() {
	rm -f refused
	STATUS=0
	timeout -s KILL 10 refuse refused "$OF" "$1" "$2" "$3" "${@:4}" 2>said 3>&- || STATUS=$?
	[ -s refused ]
}

@test "a release that could not be waited for is repeated" {
	needs_refuse
	local number=0
	while refused poll,ppoll ENOMEM $((number += 1)) rlock run a -- true; do
		ended_by "$number" 0 71
		refute grep -F 'release failed' said
		no_keys
	done
	((number > 1))
}

@test "a runtime directory that can't be read through is not one without locks" {
	needs_refuse
	local number=0
	rlock lock --pid $$ a
	while refused getdents64 ENOMEM $((number += 1)) rlock renew --pid $$ a; do
		ended_by "$number" 71
	done
	((number > 1))
	rlock unlock --pid $$ a
}

@test "a lock without a command whose renewer has not what it needs is not acquired" {
	needs_refuse
	local number=0
	while OF=rlock-renewer refused epoll_create1,timerfd_create,signalfd4 ENOMEM $((number += 1)) \
		rlock lock --pid $$ a; do
		ended_by "$number" 0 71
		[ "$STATUS" != 0 ] || rlock unlock --pid $$ a
		no_keys
		nothing_runs
	done
	((number > 1))
	rlock unlock --pid $$ a
}

@test "leftover processes of a killed command are not taken for gone while they can't be looked for" {
	needs_refuse
	local OF=rlock-renewer number=0
	while rm -f ledger* && refused openat ENFILE $((number += 1)) rlock run --grace 100ms a -- bash -c '
			overlap ledger exclusive -i -u never &
			until grep -qs enter ledger; do :; done
			kill -TERM $PPID
			wait'; do
		ended_by "$number" 143
		run -0 overlap -g ledger 0
		no_keys
	done
	((number > 3))
}

# ---- calls that there are not ----

# forbidden CALL ERROR PATTERN COMMAND [ARG...]: 71 and one line, and no server was asked for anything.
forbidden() {
	RLOCK_URL=unix:///nowhere refused "$1" "$2" 1+ "${@:4}"
	ended_by "$1" 71
	said_once "$3"
}

@test "a kernel or a sandbox without the calls to watch processes is named before anything is locked" {
	needs_refuse
	forbidden pidfd_open ENOSYS "^rlock: .* pidfd_open needs Linux 5\.3 or later, and no sandbox" rlock run a -- touch ran
	forbidden pidfd_send_signal EPERM "^rlock: .* pidfd_send_signal needs Linux 5\.3 or later, and no sandbox" rlock lock --pid $$ a
	[ ! -e ran ]
}

@test "a lock for an owner, which no process watches over, needs no kernel that can watch processes" {
	needs_refuse
	refused pidfd_open,pidfd_send_signal ENOSYS 1+ rlock lock --owner job --lease 30s a || :
	ended_by lock 0
	is_held a
	refused pidfd_open,pidfd_send_signal ENOSYS 1+ rlock unlock --owner job a || :
	ended_by unlock 0
	no_keys
}
