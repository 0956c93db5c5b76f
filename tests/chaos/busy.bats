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
WIDTH=6

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
		way=(setsid)
		((number % 2)) || way=(env)
		"${way[@]}" sh -c 'echo $$; while :; do :; done' 3>&- &
	done
}

setup() {
	directory_setup
	[ -e "$BATS_FILE_TMPDIR/busy" ] || skip 'what measures rlock would be as late as rlock: it may not come first here'
	renice -n $LOOKS_FIRST -p $$ >/dev/null
	compare_clocks
}

# ---- faults; each leaves a lease that nothing will renew ----

# fall_silent: whatever is sent from here on is lost.
fall_silent() {
	proxy blackhole on >/dev/null
}

nothing_happens() { :; }
is_silent() { fall_silent; }
kills_rlock() { fall_silent && kill -KILL "$HOLDER"; }
stops_rlock() { fall_silent && kill -STOP "$HOLDER"; }
stops_renewer() { fall_silent && kill -STOP "$(renewer_of "$HOLDER")"; }

# ---- cells ----

# A command of HOLDER's, or HOLDER's end.
has_begun() {
	has_events 1 || is_gone "$HOLDER"
}

# end_in_time NUMBER FAULT LEASE_OPTION: a holder is to be gone when its lease is over.
end_in_time() {
	local lease_s end_us later_us seen_us where
	begin_chance
	draw 3 6
	lease_s=$DRAWN
	start_proxy || return
	# The same priority for it as for the busy processes.
	# shellcheck disable=SC2034
	CLOCK=(nice -n $((-LOOKS_FIRST)))
	visits holder "${KINDS[$1 % 4]}" "$LEDGER" 'until -C' "$3" "${lease_s}s"
	HOLDER=$PID
	wait_until 30 has_begun || return
	# Its lease was over before it came to start a command.
	has_events 1 || return 0
	draw 0 $((lease_s * 333))
	[ "$3" = --lease ] || let_pass_ms "$DRAWN"
	"$2" || return
	where="$2, a lease of $lease_s s, $DRAWN ms behind the start, cell $1, chance $CHANCE"
	end_us=$(lease_end_us)
	if ((end_us == 0)); then
		must "inside without a lease: $where" overlap -g "$LEDGER" 0
		return
	fi
	[ "$2" = nothing_happens ] || injected
	repeated
	if ! seen_us=$(overlap -G "$LEDGER" $((lease_s * 2000))); then
		violated "still inside long behind the lease: $where"
		return
	fi
	# A renewal may have been on its way.
	later_us=$(lease_end_us)
	((later_us <= end_us)) || end_us=$later_us
	took $(((end_us - seen_us) / 1000))
	((seen_us < end_us)) || violated "inside $(((seen_us - end_us) / 1000)) ms behind the end of the lease: $where"
}

@test "busy machine" {
	local fault options
	for fault in nothing_happens is_silent kills_rlock stops_rlock stops_renewer; do
		options=--ttl
		[ "$fault" != nothing_happens ] || options=--lease
		begin_scenario "busy machine, ${fault//_/ }"
		in_cells "$(scaled 12)" $WIDTH end_in_time "$fault" "$options"
		end_scenario 'left of the lease' least
	done
}
