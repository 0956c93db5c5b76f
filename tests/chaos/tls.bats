#!/usr/bin/env bats
# TLS over a network that spoils a connection at one byte, in either direction, during the handshake or later: the connection is closed
# before this byte, the byte is inverted or late, or nothing passes from this byte on.
#
# Promised: a call ends by itself. It exits with 0; or with 69 or 78 and one line, without running the command. The lock is released, or
# expires if nothing passes any more. First the bytes of an undisturbed call are counted. With SCALE=40 each of them is spoiled once.

load chaos
load ../lib/certificates
load ../lib/proxying

VERSIONS=(TLSv1.3 TLSv1.2)

setup_file() {
	local number
	export CERTIFICATES=$BATS_FILE_TMPDIR/certificates PORTS=
	create_certificates "$CERTIFICATES"
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

LEASE_S=3
# If a reply is lost, rlock repeats the request for a second. This limit is much higher, for a busy machine.
CALL_LIMIT_MS=12000
WAYS=(up down)
SPOILS=(cut flip stop late)

# choose_server NUMBER: starts a proxy for this server, and makes RLOCK_URL lead to the proxy.
choose_server() {
	SERVER_SOCKET=$(socket_of "$1")
	start_tls_proxy "$(port_of "$1")"
}

counts() {
	proxy count | grep -qw "$1"
}

# measure SERVER: counts the bytes that pass each way over the one connection of a call, by the server's version of TLS.
measure() {
	local way
	choose_server "$1" || return
	rlock run -n --cacert "$CERTIFICATES/ca.crt" "$NAME" -- true || return
	wait_until 20 counts connections=1 || return
	for way in "${WAYS[@]}"; do
		proxy count | grep -o "bytes_$way=[0-9]*" | cut -d = -f 2 >"$BYTES-$1-$way"
	done
}

# spoiled_call NUMBER COUNT: makes one call whose first connection is spoiled at one byte. NUMBER determines the server, the
# direction, the fault, and the range from which the byte is drawn. The ranges of the calls 1 to COUNT have equal lengths, and
# together cover all bytes.
spoiled_call() {
	local -i turn=$(($1 - 1)) rounds=$((($2 + 15) / 16)) bytes
	local server=$((turn % 2 + 1)) way=${WAYS[turn / 2 % 2]} spoil=${SPOILS[turn / 4 % 4]}
	turn=$((turn / 16))
	bytes=$(<"$BYTES-$server-$way")
	draw $((turn * bytes / rounds)) $(((turn + 1) * bytes / rounds - 1))
	WHERE="$spoil at $DRAWN $way, ${VERSIONS[server - 1]}, $WHERE"
	choose_server "$server" && proxy at "$DRAWN" "$way" "$spoil" || return
	calls '0 69 78' rlock run -n -t ${LEASE_S}s --connect-timeout 2s --cacert "$CERTIFICATES/ca.crt" "$NAME" -- touch ran
	repeated
	! counts spoiled=1 || injected
	if [ "$STATUS" = 0 ]; then
		[ -e ran ] || violated 'the command did not run'
	else
		[ ! -e ran ] || violated "$STATUS, and the command ran"
		counts spoiled=1 || violated "$STATUS without a fault"
	fi
	# The time that nothing_is_left allows for the keys to disappear. If nothing passes any more (stop), the lock only expires
	# with its lease.
	LEFT_WITHIN_S=10
	[ "$spoil" != stop ] || LEFT_WITHIN_S=$((LEASE_S + 10))
}

@test "TLS: a call whose connection is spoiled at any byte ends by itself, and its lock is released or expires" {
	begin_scenario 'TLS, spoiled calls'
	BYTES=$PWD/bytes
	# Measure each server twice, and keep the second result: the first call also sends the scripts, which are long.
	in_cells 2 1 measure
	in_cells 2 1 measure
	in_cells "$(scaled 600)" 6 spoiled_call "$(scaled 600)"
	end_scenario 'for a call'
}
