#!/usr/bin/env bats
# A server that is not there at the start: refused at once by who does not wait, and had by who does, for as
# long as he waits.

load chaos
load ../proxying

setup_file() { start_server; }
teardown_file() { stop_server; }

# down: the proxy takes nobody in.
down() {
	start_proxy
	proxy refuse on
	injected
}

# down_for_good NUMBER KIND
down_for_good() {
	local status=0 start
	down
	start=$(now_ms)
	rlock "$(verb_of "$2")" "$NAME" -- touch ran 2>said || status=$?
	took $(($(now_ms) - start))
	repeated
	[ "$status" = 69 ] || violated "without a wait time it ended with $status"
	[ ! -e ran ] || violated 'the command ran'
	must 'not one line' has_lines said 1
	must 'keys are left' is_free "$NAME"
}

# comes_up NUMBER KIND
comes_up() {
	local status=0 pid
	down
	rlock "$(verb_of "$2")" -w 10s "$NAME" -- overlap "$LEDGER" "$(mode_of "$2")" 2>said &
	pid=$!
	let_pass 0.$((RANDOM % 10))
	proxy pass
	proxy refuse off
	wait "$pid" || status=$?
	repeated
	[ "$status" = 0 ] || violated "it ended with $status: $(cat said)"
	must 'the command did not run once' entered 1
	must 'keys are left' is_free "$NAME"
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
