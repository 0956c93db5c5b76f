#!/usr/bin/env bats
# A holder keeps the connection by which it acquired the lock, so a server that accepts no new connection, or a changed password, does
# not end a held lock.

load ../lib/usual
load ../lib/hold_processes
load ../lib/own_servers
load ../lib/proxying

@test "a holder renews and releases its lock although the server accepts no new connection and has another password" {
	start_own_server
	hold_with_pids a -t 15s
	redis config set requirepass new >/dev/null
	mv "$SERVER_SOCKET" moved
	SERVER_SOCKET=$PWD/moved
	export REDISCLI_AUTH=new
	await_renewal a 15000
	is_running "$COMMAND"
	end_commands
	ended_with 0
	stderr_is_empty
	no_keys
}

@test "a holder has one connection, the same one from the grant to the release" {
	local first
	# A renewal that the server does not answer within a ninth of the lease is repeated by another connection.
	hold_with_pids a -t 9s
	first=$(clients)
	has_clients 1
	for _ in 1 2; do
		await_renewal a 9000
	done
	assert_equal "$(clients)" "$first"
	end_commands
	ended_with 0
	wait_until 5 has_clients 0
}

@test "a signal during a renewal interrupts neither the renewal nor the connection" {
	local first
	start_realtime_proxy
	hold_for_script 'echo $$ >command-pid; exec log_signals' a -t 54s
	wait_until 5 file_has_line signals ready
	first=$(clients)
	# The lease is long, since an attempt to renew is limited to a ninth of it, and the following steps must fit into that
	# time.
	proxy hold-reply "$RENEW"
	wait_until 25 eval '[[ $(proxy state) = *held=1* ]]'
	kill -s WINCH "$PID"
	wait_until 5 file_contains signals WINCH
	proxy release
	wait_until 5 ttl_is_above a 45000
	assert_equal "$(clients)" "$first"
	end_commands
	ended_with 0
	stderr_is_empty
}

@test "a waiter has two connections at most, and one once it holds the lock" {
	local verb
	for verb in lock fair; do
		rm -f command-pid end-commands
		rlock "$verb" --owner other -l 30s a
		in_background rlock "$verb" a -- sh -c "$REPORT_PID_AND_RUN"
		wait_until 5 has_clients 2
		stays_true_for 0.5 has_clients 2
		rlock unlock --owner other a
		find_hold_processes
		wait_until 5 has_clients 1
		end_commands
		ended_with 0
	done
}
