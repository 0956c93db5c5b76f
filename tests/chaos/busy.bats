#!/usr/bin/env bats
# bats file_tags=alone
# A machine with far more to do than it has processors: all of a command's processes are gone before the lease that
# protects them ends, also where the other one of rlock and its renewer is dead or stands still.
#
# What is measured is rlock and its command, and not what looks at them: the cells, the server and what is between
# come first on the processors, as if they were elsewhere.

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

# Half of them in sessions of their own, as services are, the others in ours, as what a shell started is. Their pids.
start_busy() {
	local number way
	for ((number = 0; number < BUSY; number++)); do
		((number % 2)) && way=(env) || way=(setsid)
		"${way[@]}" sh -c 'echo $$; while :; do :; done' 3>&- &
	done
}

setup() {
	directory_setup
	[ -e "$BATS_FILE_TMPDIR/busy" ] || skip 'what measures rlock would be as late as rlock: it may not come first here'
	renice -n $LOOKS_FIRST -p $$ >/dev/null
}

# fault NAME: after which nothing will renew the lease, since whatever is sent is lost.
fault() {
	[ "$1" = 'nothing happens' ] || proxy blackhole on
	case $1 in
	'kills rlock') kill -KILL "$HOLDER" ;;
	'stops rlock') kill -STOP "$HOLDER" ;;
	'stops renewer') kill -STOP "$(renewer_of "$HOLDER")" ;;
	esac
}

# A command of HOLDER's, or HOLDER's end.
has_begun() {
	[ -s "$LEDGER" ] || is_gone "$HOLDER"
}

# end_in_time NUMBER FAULT: a holder is to be gone when its lease is over.
end_in_time() {
	local lease=--ttl lease_s end_us later_us
	[ "$2" != 'nothing happens' ] || lease=--lease
	draw 3 6
	lease_s=$DRAWN
	start_proxy || return
	# The same priority for it as for the busy processes.
	CLOCK=(nice -n $((-LOOKS_FIRST)))
	start_contender holder "${KINDS[$1 % 4]}" "$LEDGER" 'until -C' $lease "${lease_s}s"
	HOLDER=$PID
	wait_until 30 has_begun || return
	# Its lease was over before it came to start a command.
	[ -s "$LEDGER" ] || return 0
	[ $lease = --lease ] || let_some_pass $((lease_s * 333))
	fault "$2" || return
	WHERE="a lease of $lease_s s, $DRAWN ms behind the start, $WHERE"
	# Another one could go in now.
	end_us=$(lease_end_us)
	if ((end_us == 0)); then
		must 'inside without a lease' overlap -g "$LEDGER" 0
		return
	fi
	[ "$2" = 'nothing happens' ] || injected
	repeated
	look_until_gone $((lease_s * 2000)) || return 0
	# A renewal may have been on its way.
	later_us=$(lease_end_us)
	was_gone_by $((later_us > end_us ? later_us : end_us))
	# What is left was stopped or cut off.
	kill -CONT "$HOLDER" 2>/dev/null || :
	proxy pass
}

@test "busy machine" {
	local fault
	WITHOUT_FAULTS=yes scenario 'busy machine, nothing happens' 'left of the lease' 12 6 end_in_time 'nothing happens'
	for fault in 'is silent' 'kills rlock' 'stops rlock' 'stops renewer'; do
		scenario "busy machine, $fault" 'left of the lease' 12 6 end_in_time "$fault"
	done
}
