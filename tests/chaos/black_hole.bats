#!/usr/bin/env bats
# At a random moment of the first two renewal intervals the network stops passing anything, in one direction or in both. All
# processes of a command must end before the lease ends on the server, and rlock must exit with 76.

load chaos
load ../lib/proxying

setup_file() {
	start_server --notify-keyspace-events Exg
	start_metronome
}

teardown_file() {
	stop_metronome
	stop_server
}

# Delay of each reply. It is half of the 200 ms that lie between SIGKILL and the end of a lease of 1 s.
LATE_ANSWERS_MS=100
# How late a SIGTERM may be recorded. The command records it within 5 ms; the rest allows for a busy machine.
NOTED_WITHIN_US=80000

# listen_to_ends: records for each key in the file EVENTS whether it was deleted or expired.
listen_to_ends() {
	EVENTS=$BATS_TEST_TMPDIR/events
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv subscribe \
		__keyevent@0__:del __keyevent@0__:expired >"$0"' "$EVENTS"
	wait_until 20 grep -qs ',2$' "$EVENTS"
}

# lock_ended HOW: whether the lock was released ("del"), or has expired ("expired").
lock_ended() {
	grep -qE "^\"message\",\"__keyevent@0__:($1)\",\"$NAME\"" "$EVENTS"
}

# check_sigterm END_US: checks when SIGTERM came to the command of a lease that ends at END_US. SIGKILL comes a tenth of the lease
# before its end, but at least 200 ms. SIGTERM must have come a sixth of the lease before SIGKILL.
check_sigterm() {
	local told_us late_us margin_us=$((LEASE_S * 100000))
	((margin_us >= 200000)) || margin_us=200000
	told_us=$(times term | head -n 1)
	if [ -z "$told_us" ]; then
		late_since "$SINCE_US" 'killed without SIGTERM before'
		return
	fi
	late_us=$((told_us - ($1 - margin_us - LEASE_S * 1000000 / 6)))
	((late_us < NOTED_WITHIN_US)) || late_since "$SINCE_US" "SIGTERM came $((late_us / 1000)) ms too late"
}

# check_margin END_US: records how long before the end of the lease the last process was still seen inside. The lease ends at
# END_US, or later if it was renewed since then.
check_margin() {
	local end_us=$1 later_us
	look_until_gone 6000 || return 0
	later_us=$(lease_end_us)
	((later_us <= end_us)) || end_us=$later_us
	if ((SEEN_US >= end_us && later_us == 0)); then
		# If only replies were lost, renewals arrived all the time, and then the release did: the lock was protected until
		# the end.
		wait_until 20 lock_ended 'del|expired' || return
		! lock_ended del || return 0
	fi
	was_gone_by "$end_us"
	check_sigterm "$end_us"
}

# fall_silent NUMBER KIND: the network of a holder fails. If NUMBER is even, all replies come late from the start. A holder that
# wrongly counts its lease from a reply would then end too late, and be found.
fall_silent() {
	local ways=(both up down) way end_us
	way=${ways[$1 % 3]} LEASE_S=1
	(($1 % 10)) || LEASE_S=3
	start_proxy || return
	(($1 % 2)) || proxy delay $LATE_ANSWERS_MS || return
	start_holder_family holder "$2" "$LEDGER" -t ${LEASE_S}s || return
	let_some_pass $((LEASE_S * 667))
	proxy blackhole on "$way" || return
	end_us=$(lease_end_us)
	((end_us > 0)) || return
	injected
	repeated
	WHERE="$way, a lease of $LEASE_S s, $DRAWN ms behind the start, $WHERE"
	check_margin "$end_us" || return
	must_end 76 "$HOLDER" holder
	must_say holder "lock lost "
}

@test "black hole: all processes of a command end before the lease when the network passes nothing any more" {
	listen_to_ends
	scenario_of_kinds 'black hole' 'left of the lease' 60 8 fall_silent
}
