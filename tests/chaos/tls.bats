#!/usr/bin/env bats
# TLS over a network that spoils single bytes: of a handshake, and of what comes after it, the connection is closed before
# a byte, the byte is inverted or late, or nothing passes from it on, in either direction.
#
# Promised: a call ends by itself, with 0, or with 69 or 78 in one line and the command not run; what was acquired is
# released, but where nothing passes any more, when its lease has ended. The bytes are those that were counted without a fault; with
# SCALE=40 each of a call has its turn.

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
# A request whose reply was lost is retried for a second; the rest is for a machine that is busy.
CALL_LIMIT_MS=12000
WAYS=(up down)
SPOILS=(cut flip stop late)

# choose_server NUMBER: behind the proxy, which is started.
choose_server() {
	SERVER_SOCKET=$(socket_of "$1")
	start_tls_proxy "$(port_of "$1")"
}

counts() {
	proxy count | grep -qw "$1"
}

# measure SERVER: how many bytes pass each way, by its version of TLS, over the one connection of a lock.
measure() {
	local way
	choose_server "$1" || return
	rlock run -n --cacert "$CERTIFICATES/ca.crt" "$NAME" -- true || return
	wait_until 20 counts connections=1 || return
	for way in "${WAYS[@]}"; do
		proxy count | grep -o "bytes_$way=[0-9]*" | cut -d = -f 2 >"$BYTES-$1-$way"
	done
}

# spoiled_call NUMBER COUNT: one lock, whose first connection is spoiled: by the number all combinations in turn, and of the bytes those
# that are evenly apart.
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
	# For how long the lock may be left.
	LEFT_WITHIN_S=10
	[ "$spoil" != stop ] || LEFT_WITHIN_S=$((LEASE_S + 10))
}

@test "TLS, each byte of a call" {
	begin_scenario 'TLS, spoiled calls'
	BYTES=$PWD/bytes
	# The second time counts: in the first one the server knows no scripts yet, which are long.
	in_cells 2 1 measure
	in_cells 2 1 measure
	in_cells "$(scaled 600)" 6 spoiled_call "$(scaled 600)"
	end_scenario 'for a call'
}
