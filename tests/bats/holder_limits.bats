#!/usr/bin/env bats
# Priorities, resource limits, processor time and zombies of a holder.

load ../lib/usual
load ../lib/hold_processes
load ../lib/proxying

# has_priority PID PRIORITY: whether PRIORITY is the process's scheduling class, real-time priority and nice value.
has_priority() {
	local words
	read -ra words <<<"$(ps -o cls=,rtprio=,ni= -p "$1")"
	[ "${words[*]}" = "$2" ]
}

@test "rlock and its renewer get real-time priority or the best nice value if allowed, and the command does not" {
	local priority under rlock
	chrt --rr 1 true 2>/dev/null || skip 'no process may have a real-time priority here'
	needs_refuse
	# With RLIMIT_RTTIME rlock takes no real-time priority: the kernel would kill a real-time process that reaches this limit.
	while IFS='|' read -r priority under; do
		echo "$under" >&2
		# shellcheck disable=SC2086
		in_background nice -n 3 $under sh -c 'echo $$ >rlock-pid && exec rlock run a -- sh -c "$0"' "$REPORT_PID_AND_RUN"
		wait_until 10 test -s command-pid
		rlock=$(<rlock-pid)
		wait_until 10 has_priority "$rlock" "$priority"
		wait_until 10 has_renewer "$rlock"
		wait_until 10 has_priority "${RENEWERS[0]}" "$priority"
		has_priority "$(<command-pid)" "TS - $(($(nice) + 3))"
		end_commands
		ended_with 0
		rm end-commands command-pid
	done <<-'END'
		RR 1 -|
		TS - -20|refuse refused rlock sched_setscheduler EPERM 1+
		TS - -20|prlimit --rttime=200000:400000
	END
}

@test "rlock and its command keep the scheduling that the user gave them by chrt and nice, also during the release" {
	local under priority
	chrt --rr 5 true 2>/dev/null || skip 'no process may have a real-time priority here'
	start_proxy
	while IFS='|' read -r under priority; do
		echo "$under" >&2
		# Hold the replies to further attempts, too: a busy machine makes them.
		proxy hold-reply "$RELEASE" 100
		# shellcheck disable=SC2086
		in_background nice -n 3 $under rlock run a -- sh -c "$REPORT_PID_AND_RUN"
		find_hold_processes
		has_priority "$COMMAND" "$priority"
		# The renewer raises its priority, if the user has given it none that is higher.
		wait_until 10 eval 'ps -o cls= -p "$RENEWER" | grep -q RR'
		end_commands
		wait_until 5 eval 'proxy state | grep -q "held=[1-9]"'
		has_priority "$RENEWER" "$priority" || is_gone "$RENEWER" || fail "$(ps -o pid,stat,cls,rtprio,ni,args -p "$RENEWER,$PID")"
		proxy pass
		ended_with 0
		rm end-commands command-pid
	done <<-END
		chrt --rr 5|RR 5 -
		chrt --batch 0|B 0 $(($(nice) + 3))
	END
}

has_class() {
	[ "$(ps -o cls= -p "$1" | tr -d ' ')" = "$2" ]
}

@test "a renewer that is kept busy loses its real-time priority" {
	chrt --rr 1 true 2>/dev/null || skip 'no process may have a real-time priority here'
	in_background rlock run -t 90s a -- sh -c "$REPORT_PID_AND_RUN"
	find_hold_processes
	wait_until 10 has_class "$RENEWER" RR
	touch flood
	# Flood the renewer with signals, each of which wakes it. It must pass none of them on, since no process of the command
	# has sent them. Give the loops sessions of their own: the kernel then takes no processor time from other tests.
	for _ in 1 2; do
		in_background setsid python3 -IS -c 'import os, signal, sys
while os.path.exists("flood"):
    os.kill(int(sys.argv[1]), signal.SIGWINCH)' "$RENEWER"
	done
	wait_until 30 has_class "$RENEWER" TS
	rm flood
	is_held a
}

@test "time shows the processor time of the command, also when the renewer was killed" {
	local begin
	for begin in : 'kill -s KILL $PPID'; do
		run -0 bash -c 'rlock run a -- sh -c "$0"; times' "$begin; i=0; while [ \$i -lt 1000000 ]; do i=\$((i + 1)); done"
		# The second line of `times` is the processor time of the children.
		assert_line --index 1 --regexp '^([1-9]|0m([1-9]|0\.[1-9]))'
	done
}

# slow_helpers: sets SLOW to a command that runs rlock so that its helpers need 0.3 s to get their name, as on a busy machine.
slow_helpers() {
	needs_preload slow.so <<-'END'
		#define _GNU_SOURCE
		#include <poll.h>
		#include <stdarg.h>
		#include <string.h>
		#include <sys/prctl.h>
		#include <sys/syscall.h>
		#include <unistd.h>
		int prctl(int option, ...)
		{
			unsigned long value, rest[3];
			va_list list;

			va_start(list, option);
			value = va_arg(list, unsigned long);
			for (int i = 0; i < 3; i++)
				rest[i] = va_arg(list, unsigned long);
			va_end(list);
			if (option == PR_SET_NAME && strcmp((const char *)value, "rlock-helper") == 0)
				(void)poll(NULL, 0, 300);
			return (int)syscall(SYS_prctl, option, value, rest[0], rest[1], rest[2]);
		}
	END
	SLOW=(env LD_PRELOAD="$PWD/slow.so")
}

# leaves_no_zombie [WORD...]: runs a script in a PID namespace whose process 1 never waits for its children. The words precede each
# rlock.
leaves_no_zombie() {
	needs_namespaces
	cat >script <<-'EOS'
		is() { [ "$1" = "$2" ] || echo "$1, not $2" >&2; }
		"$@" rlock run a -- sh -c "exit 7"; is $? 7
		"$@" rlock run a -- sh -c "sleep 0.1; exit 7"; is $? 7
		"$@" rlock run b -- sh -c "pkill -KILL -x rlock-renewer; exit 7"; is $? 7
		"$@" rlock run -q -w 5s busy -- true; is $? 75
		"$@" rlock run -q --max-run 500ms --grace 200ms c -- sh -c "(setsid sleep 60 &); (sh -c \"sleep 60\" &); sleep 60" 2>stderr; is $? 124
		ps -e -o stat=,args= | grep ^Z >zombies
		touch over
	EOS
	hold_by_foreign_client busy
	in_background unshare --fork --pid --mount-proc --kill-child sh -c 'sh script "$@" 2>script-stderr & exec sleep 60' sh "$@"
	wait_until 20 file_exists over
	[ ! -s zombies ] || fail "not waited for: $(cat zombies)"
	[ ! -s script-stderr ] || fail "$(cat script-stderr)"
}

@test "rlock leaves no zombie under a process 1 that reaps none, however it ends" {
	leaves_no_zombie
}

@test "helpers that run late leave no zombie either" {
	slow_helpers
	leaves_no_zombie "${SLOW[@]}"
}
