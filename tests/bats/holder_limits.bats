#!/usr/bin/env bats
# What a holder does to the system, and the system to it: limits, descriptors, processor time, and zombies.

# In single quotes stand whole scripts; helpers set what is in capitals.
# shellcheck disable=SC2016,SC2153

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/holding

setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# ---- priority ----

# priority_class PID: as ps(1) calls it.
priority_class() {
	ps -o class= -p "$1" | tr -d ' '
}

has_class() {
	[ "$(priority_class "$1")" = "$2" ]
}

# A limit of the processor time that a process may spend before others: one that spends more is killed.
LIMITED=(prlimit --rttime=200000:400000)

@test "where real-time processes are limited neither rlock nor its renewer is one" {
	in_background sh -c 'exec "$@" 2>said' sh "${LIMITED[@]}" rlock run a -- sh -c "$STAYING"
	know_processes
	# A long command's are that where they may.
	stays 1.5 has_class "$PID" TS
	stays 1.5 has_class "$RENEWER" TS
	let_go
	ended_with 0
	said_nothing
}

@test "a renewer takes signals that come without end, and goes on" {
	in_background rlock run -t 3s a -- sh -c "$STAYING"
	know_processes
	local front=$PID
	touch flood
	in_background python3 -IS -c 'import os, signal, sys
while os.path.exists("flood"):
    os.kill(int(sys.argv[1]), signal.SIGWINCH)' "$front"
	# For longer than a renewer may be silent, and than the lease.
	stays 4 is_running "$RENEWER"
	is_held a
	rm flood
	ended_with 0
	let_go
	ended_with 0 "$front"
}

@test "a renewer that is kept busy comes before others no more" {
	chrt --rr 1 true 2>/dev/null || skip 'no process may have a real-time priority here'
	in_background rlock run a -- sh -c "$STAYING"
	know_processes
	local front=$PID
	wait_until 10 has_class "$RENEWER" RR
	touch flood
	# It is woken by each signal, and passes on none: its command has not sent it.
	for _ in 1 2; do
		in_background python3 -IS -c 'import os, signal, sys
while os.path.exists("flood"):
    os.kill(int(sys.argv[1]), signal.SIGWINCH)' "$RENEWER"
	done
	wait_until 30 has_class "$RENEWER" TS
	rm flood
	is_held a
	let_go
	ended_with 0 "$front"
}

# ---- descriptors ----

WITHOUT_NULL=(unshare --mount sh -c 'mount -t tmpfs none /dev && exec "$@"' sh)

needs_no_null() {
	"${WITHOUT_NULL[@]}" true 2>/dev/null || skip 'no file system can be mounted here'
}

# no_socket_below_3 PID: what is written to a standard stream goes to no server.
no_socket_below_3() {
	local fd
	for fd in 0 1 2; do
		case $(readlink "/proc/$1/fd/$fd") in
		socket:* | anon_inode:* | "$RLOCK_RUNTIME_DIR"*) return 1 ;;
		esac
	done
}

@test "without /dev/null no descriptor of the renewer's takes the place of a standard stream" {
	needs_no_null
	in_background "${WITHOUT_NULL[@]}" rlock run -t 1s a -- sh -c "$STAYING"
	know_processes
	# Not before the first renewal, for which it may connect.
	stays 0.8 no_socket_below_3 "$RENEWER"
	is_held a
	let_go
	ended_with 0
}

@test "without /dev/null no descriptor of the renewer of a process's lock takes the place of a standard stream" {
	local renewer
	needs_no_null
	in_background sleep 60
	"${WITHOUT_NULL[@]}" rlock lock -t 1s --pid "$PID" a
	renewer=$(renewers)
	stays 0.8 no_socket_below_3 "$renewer"
	is_held a
	kill "$PID"
	wait_until 5 no_keys
}

# ---- processor time ----

# spent_by COMMAND...: sets SPENT_MS, the processor time of user programs that the shell's own time counts for it.
spent_by() {
	local TIMEFORMAT=%U text
	text=$({ time "$@" >/dev/null 2>&1; } 2>&1) || return
	text=${text//./}
	SPENT_MS=$((10#$text))
}

COMPUTE='i=0; while [ $i -lt 400000 ]; do i=$((i + 1)); done'

@test "time shows the processor time of the command" {
	local alone
	spent_by sh -c "$COMPUTE"
	alone=$SPENT_MS
	((alone >= 50))
	spent_by rlock run a -- sh -c "$COMPUTE"
	((SPENT_MS >= alone / 2)) || fail "$SPENT_MS ms, of $alone"
}

@test "time shows the processor time of the command with the renewer killed, too" {
	local alone
	spent_by sh -c "$COMPUTE"
	alone=$SPENT_MS
	# It takes over, and is the one that waits for the command.
	spent_by rlock run a -- sh -c "kill -s KILL \$PPID; $COMPUTE"
	((SPENT_MS >= alone / 2)) || fail "$SPENT_MS ms, of $alone"
}

# ---- zombies ----

# A PID namespace whose first process waits for none.
UNREAPED=(unshare --fork --pid --mount-proc --kill-child)

# unreaped SCRIPT: a script in such a namespace, by a shell that is a child of the first process. Its file "zombies" has the names
# of those that no process has waited for when it has ended.
unreaped() {
	printf '%s\n' 'touch begun' "$1" 'for stat in /proc/[0-9]*/stat; do
		read -r line <"$stat" || continue
		case $line in *") Z "*) echo "$line" ;; esac
	done >zombies 2>/dev/null
	touch over; until [ -e let-go ]; do sleep 0.02; done' >script
	in_background "${UNREAPED[@]}" sh -c 'sh script 2>script-said & exec sleep 60'
	wait_until 20 file_exists over
	let_go
	[ ! -s zombies ] || fail "not waited for: $(cat zombies)"
}

@test "under a first process that reaps none rlock leaves no zombie" {
	needs_namespaces
	unreaped 'rlock run a -- sh -c "exit 7"; [ $? = 7 ] || echo wrong >&2'
	[ ! -s script-said ] || fail "$(cat script-said)"
	no_keys
}

@test "under a first process that reaps none an rlock that waited leaves no zombie" {
	needs_namespaces
	rlock lock --owner other -l 1s a
	unreaped 'rlock run -w 20s a -- true || echo wrong >&2; rlock run -n b -- rlock run -w 300ms b -- true || :'
	no_keys
}

@test "under a first process that reaps none a waiter whose wait is over leaves no zombie" {
	needs_namespaces
	rlock lock --owner other -l 20s a
	unreaped 'rlock run -q -w 1s a -- true; [ $? = 75 ] || echo wrong >&2'
	[ ! -s script-said ] || fail "$(cat script-said)"
}

@test "under a first process that reaps none a command that was terminated leaves no zombie" {
	needs_namespaces
	unreaped 'rlock run --max-run 500ms --grace 200ms a -- sh -c "(setsid sleep 60 &); (sh -c \"sleep 60\" &); sleep 60" 2>said
		[ $? = 124 ] || echo wrong >&2'
	[ ! -s script-said ] || fail "$(cat script-said)"
	no_keys
}

@test "under a first process that reaps none rlock leaves no zombie when its renewer was killed" {
	needs_namespaces
	unreaped 'rlock run a -- sh -c "pkill -KILL -x rlock-renewer; sleep 0.3; exit 7"; [ $? = 7 ] || echo wrong >&2'
	[ ! -s script-said ] || fail "$(cat script-said)"
	no_keys
}
