#!/usr/bin/env bats
# bats file_tags=alone
# On a machine with far more to do than it has processors, all processes of a command must end before the lease that protects
# them. This must also be so if rlock is killed, or if rlock or its renewer is stopped.
#
# Only rlock and its command compete with the busy processes. The cells, the server and the proxy have a higher priority,
# as if they ran on another machine.

load chaos
load ../lib/proxying

BUSY=20
LOOKS_FIRST=-15

setup_file() {
	start_server
	[ "$(nice -n $LOOKS_FIRST nice 2>/dev/null)" = $LOOKS_FIRST ] || return 0
	renice -n $LOOKS_FIRST -p "$SERVER_PID" >/dev/null
	start_busy >"$BATS_FILE_TMPDIR/busy"
}

teardown_file() {
	[ ! -e "$BATS_FILE_TMPDIR/busy" ] || xargs kill -KILL <"$BATS_FILE_TMPDIR/busy"
	stop_server
}

# start_busy: starts the busy processes, and prints their pids. Half of them have sessions of their own, as services have. The
# others stay in the session of this test, as children of a shell do.
start_busy() {
	local number way
	for ((number = 0; number < BUSY; number++)); do
		((number % 2)) && way=(env) || way=(setsid)
		"${way[@]}" sh -c 'echo $$; while :; do :; done' 3>&- &
	done
}

setup() {
	directory_setup
	[ -e "$BATS_FILE_TMPDIR/busy" ] || skip 'the test itself would be late: it may not raise its priority here'
	renice -n $LOOKS_FIRST -p $$ >/dev/null
}

# fault NAME: makes the proxy pass nothing, so that the lease is not renewed, and kills or stops rlock or its renewer if NAME says so.
# "nothing happens": does nothing.
fault() {
	[ "$1" = 'nothing happens' ] || proxy blackhole on
	case $1 in
	'kills rlock') kill -KILL "$HOLDER" ;;
	'stops rlock') kill -STOP "$HOLDER" ;;
	'stops renewer') ! has_renewer "$HOLDER" || kill -STOP "${RENEWERS[@]}" ;;
	esac
}

# has_begun: whether HOLDER's command has started, or HOLDER has ended.
has_begun() {
	[ -s "$LEDGER" ] || is_gone "$HOLDER"
}

# end_in_time NUMBER FAULT: all processes of a holder must end before its lease.
end_in_time() {
	local lease=--ttl lease_s end_us later_us
	[ "$2" != 'nothing happens' ] || lease=--lease
	draw 3 6
	lease_s=$DRAWN
	start_proxy || return
	# Give the holder the priority of the busy processes.
	CLOCK=(nice -n $((-LOOKS_FIRST)))
	start_contender holder "${KINDS[$1 % 4]}" "$LEDGER" 'until -C' $lease "${lease_s}s"
	HOLDER=$PID
	wait_until 30 has_begun || return
	# On so busy a machine the lease can end before the holder starts its command: there is nothing to check then.
	[ -s "$LEDGER" ] || return 0
	[ $lease = --lease ] || let_some_pass $((lease_s * 333))
	fault "$2" || return
	WHERE="a lease of $lease_s s, $DRAWN ms behind the start, $WHERE"
	# If the lease has already ended, another owner could acquire the lock now, so no process may be inside.
	end_us=$(lease_end_us)
	if ((end_us == 0)); then
		must 'inside without a lease' overlap -g "$LEDGER" 0
		return
	fi
	[ "$2" = 'nothing happens' ] || injected
	repeated
	look_until_gone $((lease_s * 2000)) || return 0
	# A renewal that was on its way when the fault came may have extended the lease.
	later_us=$(lease_end_us)
	was_gone_by $((later_us > end_us ? later_us : end_us))
	# Let a stopped holder continue, and the network pass everything.
	kill -CONT "$HOLDER" 2>/dev/null || :
	proxy pass
}

@test "busy machine: all processes of a command end before the lease that protects them" {
	local fault
	WITHOUT_FAULTS=yes scenario 'busy machine, nothing happens' 'left of the lease' 12 6 end_in_time 'nothing happens'
	for fault in 'is silent' 'kills rlock' 'stops rlock' 'stops renewer'; do
		scenario "busy machine, $fault" 'left of the lease' 12 6 end_in_time "$fault"
	done
}
