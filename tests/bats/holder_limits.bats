#!/usr/bin/env bats
# What a holder does to the system, and the system to it: priorities, limits, processor time, and zombies.

load ../lib/usual
load ../lib/holding

# ---- priority ----

# has_priority PID PRIORITY: its class, real-time priority and nice value are these.
has_priority() {
	local words
	read -ra words <<<"$(ps -o cls=,rtprio=,ni= -p "$1")"
	[ "${words[*]}" = "$2" ]
}

# comes_first PRIORITY COMMAND...: rlock and its renewer have that priority under that command, and what rlock runs
# has its caller's.
comes_first() {
	in_background nice -n 3 "${@:2}" sh -c 'echo $$ >rlock-pid && exec rlock run a -- \
		sh -c "echo \$\$ >command && exec until_let_go"'
	wait_until 10 test -s command
	wait_until 10 has_priority "$(cat rlock-pid)" "$1"
	wait_until 10 has_renewer "$(cat rlock-pid)"
	wait_until 10 has_priority "$(renewer_of "$(cat rlock-pid)")" "$1"
	has_priority "$(cat command)" "TS - $(($(nice) + 3))"
}

@test "rlock and its renewer come before all others on a busy machine where they may, and the command does not" {
	chrt --rr 1 true 2>/dev/null || skip 'no process may have a real-time priority here'
	comes_first 'RR 1 -' env
}

@test "rlock and its renewer have the best nice value where they may not come before all others" {
	[ "$(nice -n -40 nice 2>/dev/null)" = -20 ] || skip 'no process may have a better nice value here'
	refuse refused rlock sched_setscheduler EPERM 1 true || skip 'no call can be refused here'
	comes_first 'TS - -20' refuse refused rlock sched_setscheduler EPERM 1+
}

@test "rlock and its renewer have no real-time priority where a limit of its time would kill them" {
	chrt --rr 1 true 2>/dev/null || skip 'no process may have a real-time priority here'
	comes_first 'TS - -20' prlimit --rttime=200000:400000
}

has_class() {
	[ "$(ps -o cls= -p "$1" | tr -d ' ')" = "$2" ]
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

# ---- processor time ----

# spent_by COMMAND...: sets SPENT_MS, the processor time of user programs that the shell's own time counts for it.
spent_by() {
	local TIMEFORMAT=%U text
	text=$({ time "$@" >/dev/null 2>&1; } 2>&1) || return
	text=${text//./}
	SPENT_MS=$((10#$text))
}

COMPUTE='i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done'

@test "time shows the processor time of the command, with the renewer killed, too" {
	local alone
	spent_by sh -c "$COMPUTE"
	alone=$SPENT_MS
	((alone >= 25))
	spent_by rlock run a -- sh -c "$COMPUTE"
	((SPENT_MS >= alone / 2)) || fail "$SPENT_MS ms, of $alone"
	# rlock takes over, and is the one that waits for the command.
	spent_by rlock run a -- sh -c "kill -s KILL \$PPID; $COMPUTE"
	((SPENT_MS >= alone / 2)) || fail "$SPENT_MS ms, of $alone"
}

# ---- zombies ----

# A PID namespace whose first process waits for none. In it a script runs by a shell that is a child of the first process. The
# file "zombies" has the names of those that no process has waited for when it has ended.
@test "under a first process that reaps none rlock leaves no zombie, however it ends" {
	needs_namespaces
	cat >script <<-'EOS'
		is() { [ "$1" = "$2" ] || echo "$1, not $2" >&2; }
		rlock run a -- sh -c "exit 7"; is $? 7
		rlock run b -- sh -c "pkill -KILL -x rlock-renewer; exit 7"; is $? 7
		rlock run -q -w 500ms busy -- true; is $? 75
		rlock run -q --max-run 500ms --grace 200ms c -- sh -c "(setsid sleep 60 &); (sh -c \"sleep 60\" &); sleep 60" 2>said; is $? 124
		for stat in /proc/[0-9]*/stat; do
			read -r line <"$stat" || continue
			case $line in *") Z "*) echo "$line" ;; esac
		done >zombies 2>/dev/null
		touch over
		until [ -e let-go ]; do sleep 0.02; done
	EOS
	held_by_stranger busy
	in_background unshare --fork --pid --mount-proc --kill-child sh -c 'sh script 2>script-said & exec sleep 60'
	wait_until 20 file_exists over
	let_go
	[ ! -s zombies ] || fail "not waited for: $(cat zombies)"
	[ ! -s script-said ] || fail "$(cat script-said)"
}
