#!/usr/bin/env bats
# A holder keeps the connection by which it acquired its lock: a server that takes no other one, and a password that has
# changed, do not end a lock that is held.

load ../lib/usual
load ../lib/hold_processes
load ../lib/own_servers
load ../lib/proxying

@test "a holder keeps and releases its lock on a server that takes no other connection, and whose password has changed" {
	own_server
	hold_with_pids a -t 3s
	redis config set requirepass new >/dev/null
	mv "$SERVER_SOCKET" moved
	stays_true_for 3.5 is_running "$COMMAND"
	end_commands
	ended_with 0
	stderr_is_empty
	assert_equal "$(REDISCLI_AUTH=new ask_redis ./moved dbsize)" 0
}

@test "a holder has one connection, the same one from the grant to the release" {
	local first
	hold_with_pids a -t 3s
	first=$(clients)
	has_clients 1
	for _ in 1 2 3; do
		wait_until 10 ttl_is_below a 2500
		wait_until 10 is_renewed a 3000
	done
	assert_equal "$(clients)" "$first"
	end_commands
	ended_with 0
	has_clients 0
}

@test "a signal that comes while a renewal is under way costs a holder neither that nor its connection" {
	local first
	start_proxy
	hold_for_script 'echo $$ >command-pid; exec log_signals' a -t 18s
	wait_until 5 file_has_line signals ready
	first=$(clients)
	# An attempt to renew takes a ninth of the lease at most, and what follows has to fit into it.
	proxy hold-reply "$RENEW"
	wait_until 15 eval 'proxy state | grep -q held=1'
	kill -s WINCH "$PID"
	wait_until 5 file_has_line signals WINCH
	proxy release
	wait_until 5 is_renewed a 18000
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
		in_background rlock "$verb" -t 3s a -- sh -c "$REPORT_PID_AND_RUN"
		wait_until 5 has_clients 2
		stays_true_for 0.5 has_clients 2
		rlock unlock --owner other a
		find_hold_processes
		wait_until 5 has_clients 1
		end_commands
		ended_with 0
	done
}
