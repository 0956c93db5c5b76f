# How long before the end of its lease on the server a command was gone, when its lock cannot be renewed any more. Sourced
# behind chaos.bash by scenarios whose HOLDER and RENEWER these are, and which begin at SINCE_US; the server tells of keys that end
# (--notify-keyspace-events Exg).

# Whatever way a key takes from the server, it says so there.
listen_to_ends() {
	EVENTS=$BATS_TEST_TMPDIR/events
	# shellcheck disable=SC2016
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv subscribe \
		__keyevent@0__:del __keyevent@0__:expired >"$0"' "$EVENTS"
	# in_cells waits for all that is its shell's.
	disown "$PID"
	wait_until 20 grep -qs ',2$' "$EVENTS"
}

# How the lock went: "del", it was released, or "expired".
end_of_lock() {
	sed -n "s/^\"message\",\"__keyevent@0__:\(.*\)\",\"$NAME\"\$/\1/p" "$EVENTS" | head -n 1
}

lock_has_ended() {
	[ -n "$(end_of_lock)" ]
}

# starved_ms PID: sets STARVED_MS, for how long it has been kept waiting for a processor.
starved_ms() {
	local fields=()
	{ read -r -a fields <"/proc/$1/schedstat"; } 2>/dev/null || :
	STARVED_MS=$((${fields[1]:-0} / 1000000))
}

# begin_starving: what HOLDER and RENEWER are kept waiting counts from here on.
begin_starving() {
	starved_ms "$HOLDER"
	STARVED=$STARVED_MS
	starved_ms "$RENEWER"
	STARVED+=" $STARVED_MS"
}

# That a violation can be judged.
starving() {
	local holder_ms=${STARVED% *} renewer_ms=${STARVED#* }
	starved_ms "$HOLDER"
	echo -n "of that rlock was kept waiting for a processor for $((STARVED_MS - holder_ms)) ms,"
	starved_ms "$RENEWER"
	echo " its renewer for $((STARVED_MS - renewer_ms)) ms"
}

# A command that is told to end writes it down with the next look, 5 ms later at most; the rest is for a machine that is busy.
NOTED_WITHIN_US=80000

# check_told LEASE_S END_US WHERE: the command was told to end early enough: SIGKILL is to come a tenth of the lease
# before its end, 200 ms at least, and SIGTERM a sixth of it before that.
check_told() {
	local told_us late_us margin_us=$(($1 * 100000))
	((margin_us >= 200000)) || margin_us=200000
	told_us=$(sed -n 's/ term .*//p' "$LEDGER" | head -n 1)
	if [ -z "$told_us" ]; then
		late_since "$SINCE_US" "killed without SIGTERM before: $3"
		return
	fi
	late_us=$((told_us - ($2 - margin_us - $1 * 1000000 / 6)))
	((late_us < NOTED_WITHIN_US)) || late_since "$SINCE_US" "SIGTERM came $((late_us / 1000)) ms too late: $3"
}

# check_margin LEASE_S END_US WHERE: the lease was to end then, or later if it was renewed since; by how much
# sooner was a process seen inside for the last time?
check_margin() {
	local end_us=$2 later_us seen_us starving
	if ! seen_us=$(overlap -G "$LEDGER" 6000); then
		late_since "$SINCE_US" "still inside long behind the lease: $3"
		return
	fi
	starving=$(starving)
	later_us=$(lease_end_us)
	((later_us <= end_us)) || end_us=$later_us
	if ((seen_us >= end_us && later_us == 0)); then
		# Where only the replies were lost it was renewed all the time, and released.
		wait_until 20 lock_has_ended || return
		[ "$(end_of_lock)" != del ] || return 0
	fi
	took $(((end_us - seen_us) / 1000))
	((seen_us < end_us)) ||
		late_since "$SINCE_US" "inside $(((seen_us - end_us) / 1000)) ms behind the end of the lease, $starving: $3"
	check_told "$1" "$end_us" "$starving: $3"
}
