#!/usr/bin/env bats
# A server that is not there at the start: 69 at once without --wait, and with it the lock is acquired once
# the server is there, for as long as the wait.

load chaos
load ../lib/proxying

setup_file() { start_server; }
teardown_file() { stop_server; }

WAYS=(refuses missing deserted)

# down NUMBER: in turn, a process is there and lets no client in, or there is nothing, or what is left of a server
# that was killed. Sets WAY and LIMIT_MS, by when a call that does not wait is to know: one that was let in and thrown out may have lost
# an answer, and is asking for a second.
down() {
	WAY=${WAYS[$1 % 3]} LIMIT_MS=1000
	export RLOCK_URL=unix://$BATS_TEST_TMPDIR/proxy.sock
	case $WAY in
	refuses)
		start_proxy && proxy refuse on || return
		LIMIT_MS=2500
		;;
	deserted)
		start_proxy || return
		kill -KILL "$PID"
		wait "$PID" || :
		[ -S "$BATS_TEST_TMPDIR/proxy.sock" ] || return
		;;
	esac
	injected
}

# come_up: it lets every client in.
come_up() {
	case $WAY in
	refuses) proxy pass && proxy refuse off ;;
	*) start_proxy ;;
	esac
}

# down_for_good NUMBER KIND
down_for_good() {
	local status=0 start took_ms
	down "$1" || return
	start=$(now_ms)
	rlock "$(verb_of "$2")" "$NAME" -- touch ran 2>said || status=$?
	took_ms=$(($(now_ms) - start))
	repeated
	took "$took_ms"
	((took_ms <= LIMIT_MS)) || violated "$WAY: without a wait time it took $took_ms ms"
	[ "$status" = 69 ] || violated "$WAY: without a wait time it ended with $status"
	must "$WAY: the command ran" [ ! -e ran ]
	must "$WAY: not one line" has_lines said 1
	must "$WAY: keys are left" is_free "$NAME"
}

# comes_up NUMBER KIND
comes_up() {
	local status=0 pid
	down "$1" || return
	rlock "$(verb_of "$2")" -w 10s "$NAME" -- overlap "$LEDGER" "$(mode_of "$2")" 2>said &
	pid=$!
	let_pass 0.$((RANDOM % 10))
	come_up || return
	wait "$pid" || status=$?
	repeated
	[ "$status" = 0 ] || violated "$WAY: it ended with $status: $(cat said)"
	must "$WAY: the command did not run once" entered 1
	must "$WAY: keys are left" is_free "$NAME"
}

server_down() {
	begin_scenario "server down, $1"
	in_cells "$(scaled 20)" 8 down_for_good "$1"
	in_cells "$(scaled 20)" 8 comes_up "$1"
	end_scenario 'until refused'
}

@test "server down, plain" {
	server_down plain
}

@test "server down, fair" {
	server_down fair
}

@test "server down, read" {
	server_down read
}

@test "server down, write" {
	server_down write
}
