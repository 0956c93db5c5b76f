#!/usr/bin/env bats
# bats file_tags=long
# A server that closes a new connection: what it said before, and at which command it did so, reaches the user.

# In single quotes stand whole scripts; each test is a subshell, and knows that.
# shellcheck disable=SC2016,SC2030,SC2031,SC2034,SC2154

load ../lib/helpers
load ../lib/leftovers

# For the helpers, which look at one.
setup_file() { start_server; }
teardown_file() { stop_server; }

setup() { directory_setup; }

teardown() { watchful_teardown; }

# start_closing ADDRESS WORDS COMMANDS: a server on this port or path that says WORDS to each client as soon as it comes,
# +OK to each of so many commands, and closes then.
start_closing() {
	in_background python3 -IS -c '
import socket, sys
address, words, commands = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
if address.isdigit():
    listener = socket.create_server(("127.0.0.1", int(address)))
else:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
while True:
    stream = listener.accept()[0]
    stream.sendall(words)
    if not words:
        stream.recv(10000)
        stream.sendall(b"+OK\r\n" * commands)
    stream.close()
' "$@"
}

# refused URL PATTERN: the lock is not acquired for this reason.
refused() {
	run -69 rlock run -n --connect-timeout 1s -u "$1" a -- touch begun
	assert_one_line "^rlock: a: $2$"
	assert [ ! -e begun ]
}

@test "a server that has too many clients is quoted, whatever came first, its words or the end of the connection" {
	local socket=$BATS_TEST_TMPDIR/socket full=$'-ERR max number of clients reached\r\n' again
	choose_port
	start_closing "$PORT" "$full" 0
	start_closing "$socket" "$full" 0
	wait_until 5 is_listened_on "$PORT"
	wait_until 5 file_exists "$socket"
	for again in 1 2 3 4 5; do
		refused "redis://127.0.0.1:$PORT" 'denied by the server: raise its maxclients: a waiter takes two, a holder one: ERR max number of clients reached'
		refused "redis://:secret@127.0.0.1:$PORT" 'denied by the server: raise its maxclients: a waiter takes two, a holder one: ERR max number of clients reached'
		refused "unix://$socket" 'denied by the server: raise its maxclients: a waiter takes two, a holder one: ERR max number of clients reached'
	done
}

@test "a server that closes with words of its own is quoted" {
	choose_port
	start_closing "$PORT" $'-ERR the proxy is going down\r\n' 0
	wait_until 5 is_listened_on "$PORT"
	refused "redis://127.0.0.1:$PORT" \
		"cannot reach redis://127.0.0.1:$PORT/0: the server closed the connection: ERR the proxy is going down"
}

@test "a proxy that closes at a command which it does not know is told of with that command" {
	local silent
	choose_port
	silent=$PORT
	start_closing "$silent" '' 0
	wait_until 5 is_listened_on "$silent"
	choose_port
	start_closing "$PORT" '' 1
	wait_until 5 is_listened_on "$PORT"
	refused "redis://127.0.0.1:$silent" "cannot reach redis://127.0.0.1:$silent/0: the server closed the connection at CLIENT SETNAME: if this is a TLS port, its URL begins with rediss://"
	refused "redis://:secret@127.0.0.1:$PORT" "cannot reach redis://127.0.0.1:$PORT/0: the server closed the connection at CLIENT SETNAME"
	refused "redis://127.0.0.1:$PORT" "cannot reach redis://127.0.0.1:$PORT/0: the server closed the connection at EVALSHA"
}
