#!/usr/bin/env bats
# TLS over a network that spoils single bytes: of a handshake, and of what comes after it, the connection is closed before
# a byte, the byte is inverted, or nothing passes from it on, in either direction.
#
# Promised is: a call ends by itself, with 0, or with 69 or 78 in one line and the command not run; what was acquired is
# released, but where nothing passes any more, when its lease has ended; a lock that is held is renewed over another
# connection. With SCALE=50 each byte has its turn.

# PORT is choose_port's.
# shellcheck disable=SC2153

load chaos
load ../lib/certificates
load ../lib/proxying

VERSIONS=(TLSv1.3 TLSv1.2)

setup_file() {
	local number
	export CERTIFICATES=$BATS_FILE_TMPDIR/certificates PORTS=
	certificates "$CERTIFICATES"
	for number in 1 2; do
		choose_port
		start_server_number "$number" --tls-port "$PORT" --tls-cert-file "$CERTIFICATES/server.crt" \
			--tls-key-file "$CERTIFICATES/server.key" --tls-ca-cert-file "$CERTIFICATES/ca.crt" \
			--tls-auth-clients no --tls-protocols "${VERSIONS[number - 1]}"
		PORTS+="${PORTS:+ }$PORT"
	done
	use_first_server
}

teardown_file() { stop_servers; }

TIMEOUT_MS=500
LEASE_S=3
# A reply that was lost is asked for once more, for a second; the rest is for a machine that is busy.
CALL_LIMIT_MS=8000
# More than either side says in a call.
BYTES=2600
WAYS=(up down)
SPOILS=(cut flip stop)

# choose_spot NUMBER: sets SERVER, WAY, SPOIL and POSITION, by the number all combinations in turn, and of the bytes those
# that are evenly apart.
choose_spot() {
	local -i turn=$(($1 - 1))
	SERVER=$((turn % 2 + 1)) turn=$((turn / 2))
	WAY=${WAYS[turn % 2]} turn=$((turn / 2))
	SPOIL=${SPOILS[turn % 3]} turn=$((turn / 3))
	POSITION=$((turn * BYTES * 12 / COUNT + RANDOM % (BYTES * 12 / COUNT + 1)))
	SPOT="$SPOIL at $POSITION $WAY, ${VERSIONS[SERVER - 1]}"
}

# was_spoiled: the fault happened.
was_spoiled() {
	proxy count | grep -q 'spoiled=1'
}

is_gone_from() {
	[ "$(on "$SERVER" redis exists "$NAME")" = 0 ]
}

# call NUMBER: one lock, whose first connection is spoiled.
call() {
	local status=0 start_ms lines
	begin_chance
	choose_spot "$1"
	start_tls_proxy "$(port_of "$SERVER")" || return
	proxy at "$POSITION" "$WAY" "$SPOIL" >/dev/null || return
	start_ms=$(boottime_ms)
	rlock run -n -t ${LEASE_S}s --connect-timeout ${TIMEOUT_MS}ms --cacert "$CERTIFICATES/ca.crt" "$NAME" -- touch ran 2>said || status=$?
	took $(($(boottime_ms) - start_ms))
	(($(boottime_ms) - start_ms < CALL_LIMIT_MS)) || violated "took longer than $CALL_LIMIT_MS ms: $SPOT"
	repeated
	! was_spoiled || injected
	mapfile -t lines <said
	case $status in
	0) [ -e ran ] || violated "0, and the command did not run: $SPOT" ;;
	69 | 78)
		[ ! -e ran ] || violated "$status, and the command ran: $SPOT"
		((${#lines[@]} == 1)) || violated "$status in ${#lines[@]} lines: ${lines[*]}: $SPOT"
		was_spoiled || violated "$status without a fault: ${lines[*]}: $SPOT"
		;;
	*) violated "ended with $status: ${lines[*]}: $SPOT" ;;
	esac
	must "the lock is left after $status: $SPOT" wait_until "$(left_s)" is_gone_from
}

# left_s: for how long the lock may be left.
left_s() {
	if [ "$SPOIL" = stop ]; then echo $((LEASE_S + 3)); else echo 2; fi
}

# renew NUMBER: the renewer's connection, which resumes the session of the first one, is spoiled.
renew() {
	begin_chance
	choose_spot "$1"
	# A resumed handshake is short, and the renewals come after it.
	POSITION=$((POSITION / 2))
	SPOT="$SPOIL at $POSITION $WAY, ${VERSIONS[SERVER - 1]}"
	start_tls_proxy "$(port_of "$SERVER")" || return
	visits holder plain "$LEDGER" until -t 6s --connect-timeout ${TIMEOUT_MS}ms --cacert "$CERTIFICATES/ca.crt" || return
	wait_until 10 entered 1 || return
	proxy at "$POSITION" "$WAY" "$SPOIL" >/dev/null || return
	# Two renewals and their repetition.
	let_pass_ms 5000
	repeated
	! was_spoiled || injected
	runs "$PID" || violated "the holder has ended: $(said_by holder): $SPOT"
	took "$(on "$SERVER" redis pttl "$NAME")"
	leaves holder
	must_end 0 holder "$PID" "$SPOT"
	must "the lock is left: $SPOT" wait_until 2 is_gone_from
}

@test "TLS, each byte of a call" {
	begin_scenario 'TLS, spoiled calls'
	COUNT=$(scaled 600)
	in_cells "$COUNT" 6 call
	end_scenario 'for a call'
}

@test "TLS, each byte of a renewer's connection" {
	begin_scenario 'TLS, spoiled renewals'
	COUNT=$(scaled 120)
	in_cells "$COUNT" 24 renew
	end_scenario 'left of the lease' least
}
