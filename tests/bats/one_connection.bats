#!/usr/bin/env bats
# A holder keeps the connection by which it acquired its lock: a server that takes no other one, and a password that has
# changed, do not end a lock that is held.

load ../lib/usual
load ../lib/holding
load ../lib/own_servers
load ../lib/proxying

# fill_server: the test's server has no room for another client than those that it has, and one by which it can be told to
# have some again.
fill_server() {
	local pid=$PID
	mkfifo orders
	exec {ORDERS}<>orders
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" <orders >/dev/null'
	PID=$pid
	echo 'client setname orders' >&"$ORDERS"
	wait_until 5 has_client orders
	# Without the one that asks.
	echo "config set maxclients $(($(redis info clients | sed -n 's/^connected_clients:\([0-9]*\).*/\1/p') - 1))" >&"$ORDERS"
	wait_until 5 is_full
}

has_client() {
	redis client list | grep -q " name=$1 "
}

is_full() {
	! server_answers
}

# make_room: for as many as want to come.
make_room() {
	echo 'config set maxclients 1000' >&"$ORDERS"
	wait_until 5 server_answers
	exec {ORDERS}>&-
}

@test "a holder keeps and releases its lock on a server that has no room for another client" {
	own_server
	hold_and_know a -t 2s
	fill_server
	stays 2.5 is_running "$COMMAND"
	let_go
	ended_with 0
	said_nothing
	make_room
	no_keys
}

@test "a holder keeps its lock when the server's password has changed" {
	own_server
	hold_and_know a -t 2s
	# The password is not known to those that look.
	redis config set requirepass new >/dev/null
	stays 2.5 is_running "$COMMAND"
	let_go
	ended_with 0
	said_nothing
	assert_equal "$(REDISCLI_AUTH=new redis-cli --no-auth-warning -s "$SERVER_SOCKET" dbsize)" 0
}

@test "a holder has one connection, the same one from the grant to the release" {
	local first
	hold_and_know a -t 1s
	first=$(clients)
	has_clients 1
	for _ in 1 2 3; do
		wait_until 5 ttl_is_below a 850
		wait_until 5 is_renewed a 1000
	done
	assert_equal "$(clients)" "$first"
	let_go
	ended_with 0
	has_clients 0
}

@test "a signal that comes while a renewal is under way costs a holder neither that nor its connection" {
	local first
	start_proxy
	hold_for 'echo $$ >command-pid; exec log_signals' a -t 9s
	wait_until 5 file_says signals ready
	first=$(clients)
	proxy hold-reply "$RENEW"
	wait_until 10 holds_reply
	kill -s WINCH "$PID"
	wait_until 5 file_says signals WINCH
	proxy release
	wait_until 5 is_renewed a 9000
	assert_equal "$(clients)" "$first"
	let_go
	ended_with 0
	said_nothing
}

holds_reply() {
	proxy state | grep -q 'held=1'
}

@test "a waiter has two connections at most, and one once it holds the lock" {
	local verb
	for verb in lock fair; do
		rm -f command-pid let-go
		rlock "$verb" --owner other -l 30s a
		in_background rlock "$verb" -t 1s a -- sh -c "$STAYING"
		wait_until 5 has_clients 2
		stays 0.5 has_clients 2
		rlock unlock --owner other a
		know_processes
		wait_until 5 has_clients 1
		let_go
		ended_with 0
	done
}
