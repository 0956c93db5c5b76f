#!/usr/bin/env bats
# TLS over a network that spoils single bytes: of a handshake, and of what comes after it, the connection is closed before
# a byte, the byte is inverted or late, or nothing passes from it on, in either direction.
#
# Promised is: a call ends by itself, with 0, or with 69 or 78 in one line and the command not run; what was acquired is
# released, but where nothing passes any more, when its lease has ended. The bytes are those that were counted without a fault; with SCALE=40 each of a call has its turn.

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

TIMEOUT_MS=2000
LEASE_S=3
# A reply that was lost is asked for once more, for a second; the rest is for a machine that is busy.
CALL_LIMIT_MS=12000
WAYS=(up down)
SPOILS=(cut flip stop late)
COMBINATIONS=$((2 * ${#WAYS[@]} * ${#SPOILS[@]}))

# measure: how many bytes pass each way, by each server's version of TLS, over the one connection of a lock. Sets the array BYTES.
measure() {
	local way NAME
	declare -gA BYTES=()
	# The second time counts: in the first one the server knows no scripts yet, which are long.
	for SERVER in 1 1 2 2; do
		NAME=measured.$RANDOM
		start_tls_proxy "$(port_of "$SERVER")" || return
		lock_once || return
		wait_until 20 counts connections=1 || return
		for way in "${WAYS[@]}"; do
			BYTES[$SERVER $way]=$(proxy count | grep -o "bytes_$way=[0-9]*" | cut -d = -f 2)
		done
		proxy quit >/dev/null
	done
	for SERVER in 1 2; do
		echo "# $SCENARIO: ${VERSIONS[SERVER - 1]}: ${BYTES[$SERVER up]} bytes up, ${BYTES[$SERVER down]} down" >&3
	done
}

counts() {
	proxy count | grep -qw "$1"
}

# choose_spot NUMBER: sets SERVER, WAY, SPOIL and POSITION, by the number all combinations in turn, and of the bytes those
# that are evenly apart.
choose_spot() {
	local -i turn=$(($1 - 1)) rounds=$(((COUNT + COMBINATIONS - 1) / COMBINATIONS)) bytes least
	SERVER=$((turn % 2 + 1)) turn=$((turn / 2))
	WAY=${WAYS[turn % 2]} turn=$((turn / 2))
	SPOIL=${SPOILS[turn % ${#SPOILS[@]}]} turn=$((turn / ${#SPOILS[@]}))
	bytes=${BYTES[$SERVER $WAY]} least=$((turn * bytes / rounds))
	draw "$least" $(((turn + 1) * bytes / rounds - 1))
	POSITION=$((DRAWN > least ? DRAWN : least))
	SPOT="$SPOIL at $POSITION $WAY, ${VERSIONS[SERVER - 1]}"
}

was_spoiled() {
	counts spoiled=1
}

is_gone_from() {
	[ "$(on "$SERVER" redis exists "$NAME")" = 0 ]
}

lock_once() {
	rlock run -n -t ${LEASE_S}s --cacert "$CERTIFICATES/ca.crt" "$NAME" -- true
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
	if [ "$SPOIL" = stop ]; then echo $((LEASE_S + 10)); else echo 10; fi
}

@test "TLS, each byte of a call" {
	begin_scenario 'TLS, spoiled calls'
	COUNT=$(scaled 600)
	measure
	in_cells "$COUNT" 6 call
	end_scenario 'for a call'
}
