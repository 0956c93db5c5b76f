#!/usr/bin/env bats
# bats file_tags=long
# One lock on several servers that all must agree, when rlock or its renewer is killed, replies get lost, or one of the
# servers refuses.

# In single quotes stand whole scripts; each test is a subshell, and knows that; runs_once is agreeing.bash's.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../lib/helpers
load ../lib/leftovers
load ../lib/watching
load ../lib/proxying
load ../lib/agreeing

setup_file() { start_warm_servers 9; }
teardown_file() { stop_servers; }
setup() { servers_setup; }
teardown() { servers_teardown; }

# ---- rlock, the renewer ----

# hold_and_know NAME [OPTION...]: as hold_on_each; sets RENEWER and CHILD, too.
hold_and_know() {
	hold_on_each "$@"
	wait_until 5 has_command "$PID"
	CHILD=$(command_of "$PID")
	wait_until 5 has_renewer "$PID"
	RENEWER=$(renewer_of "$PID")
	BACKGROUND+=("$CHILD" "$RENEWER")
	[ -n "$RENEWER" ]
}

@test "with rlock killed the lock is held on all servers until the command has ended, and released on all" {
	hold_and_know a -t 3s
	kill -s KILL "$PID"
	stays 3.5 on_each is_held a
	is_running "$CHILD"
	let_go
	wait_until 5 on_each no_keys
	wait_until 5 nothing_runs
}

@test "with rlock and its renewer killed the lock is free on all servers after a lease" {
	hold_and_know a -t 1s
	kill -s KILL "$PID" "$RENEWER"
	wait_until 3 on_each no_keys
	is_running "$CHILD"
	wait_until 5 nothing_runs
}

@test "rlock killed at any moment: none meets another, and after a lease nothing is left" {
	local start took lane lanes=()
	start=${EPOCHREALTIME/./}
	rlock run measured -- true
	took=$((${EPOCHREALTIME/./} - start))
	lane() {
		local i
		for ((i = 0; i < 6; i++)); do
			timeout --foreground -s KILL "$(awk -v us=$((RANDOM * 4 * took / 32768)) 'BEGIN { printf "%.6f", us / 1e6 + 1e-4 }')" \
				rlock run -t 4s "lock$1.$i" -- sh -c 'mkdir "in-$0" || echo "$0" >>wrong; rmdir "in-$0"' "lock$1.$i" 3>&- &
			rlock run -w 60s -t 4s "lock$1.$i" -- \
				sh -c 'mkdir "in-$0" || echo "$0" >>wrong; rmdir "in-$0"; echo >>ran' "lock$1.$i" || echo "$?" >>wrong
			wait
		done
	}
	for lane in 1 2 3 4; do
		lane $lane 2>>said &
		lanes+=($!)
	done
	wait "${lanes[@]}"
	wait_until 10 on_each no_keys
	[ ! -e wrong ] || fail "$(cat wrong)"
	has_lines ran 24
}

# ---- replies that get lost ----

# run_counted [OPTION...]: that command under the lock "a"; it has to run once, with one hold on each, and
# nothing may be left.
run_counted() {
	run -7 --separate-stderr rlock run "$@" a -- sh -c "$runs_once"
	assert_output $'1\n1\n1'
	# shellcheck disable=SC2154 # run sets it
	assert_equal "$stderr" ''
	has_lines ran 1
	on_each no_keys
}

faults_happened_at() {
	proxy_to "$1" state | grep -q 'rules=0'
}

@test "one server's reply to the acquire is lost: the command runs once, and nothing is left" {
	start_proxy_to 1
	start_proxy_to 3
	proxy_to 1 drop-reply "$ACQUIRE"
	run_counted
	faults_happened_at 1
	rm ran
	proxy_to 3 drop-reply "$ACQUIRE" 3
	run_counted -w 10s
	faults_happened_at 3
	rm ran
	proxy_to 1 drop-reply "$ACQUIRE"
	proxy_to 3 drop-reply "$ACQUIRE"
	run_counted -w 10s
}

@test "one server's replies to the acquire are all lost: 69, and nothing is left on any" {
	start_proxy_to 2
	proxy_to 2 drop-reply "$ACQUIRE" 1000
	run -69 rlock run -w 300ms -t 1s a -- touch ran
	assert_one_line '^rlock: a: '
	[ ! -e ran ]
	on 1 no_keys
	on 3 no_keys
	wait_until 2 on_each no_keys
}

# ---- servers that refuse ----

@test "one server that wants another password: 77 in one line, and nothing is left on the others" {
	local number
	take_servers 3
	for number in "${SERVERS[@]}"; do
		on "$number" redis config set requirepass s3cr3t
		run -77 rlock run a -- touch ran
		assert_one_line '^rlock: a: .*password'
		nothing_but "$number"
		REDISCLI_AUTH=wr0ng run -77 rlock run -w 1s a -- touch ran
		assert_one_line '^rlock: a: '
		refute_output --partial wr0ng
		nothing_but "$number"
		REDISCLI_AUTH=s3cr3t on "$number" redis config set requirepass ''
	done
	[ ! -e ran ]
	on_each no_keys
}

@test "one server that is full, or a replica: 69 in one line, and nothing is left on the others" {
	take_servers 3
	on "${SERVERS[1]}" redis config set maxmemory 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: .*memory'
	on_each no_keys
	on "${SERVERS[1]}" redis config set maxmemory 0
	on "${SERVERS[2]}" redis replicaof 127.0.0.1 1
	run -69 rlock run a -- touch ran
	assert_one_line '^rlock: a: '
	on "${SERVERS[0]}" no_keys
	on "${SERVERS[1]}" no_keys
	[ ! -e ran ]
}
