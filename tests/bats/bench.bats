#!/usr/bin/env bats
# What `make bench` measures with and shows its numbers by. What the numbers are is the benchmark's business.

load ../lib/helpers
load ../lib/proxying

setup_file() { start_server; }

teardown_file() { stop_server; }

setup() { common_setup; }

teardown() { common_teardown; }

# pinged_ms PORT: how long a connection takes until its first reply came, and from there to its second one.
pinged_ms() {
	python3 - "$1" <<-'END'
		import socket, sys, time
		begin = time.monotonic()
		server = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
		for _ in range(2):
		    server.sendall(b"PING\r\n")
		    assert server.recv(100) == b"+PONG\r\n"
		    print(int(1000 * (time.monotonic() - begin)), end=" ")
		    begin = time.monotonic()
		print()
	END
}

@test "a server that is far away is so for the handshake of a connection and for each request" {
	local first second port
	start_proxy_between tcp:127.0.0.1:0 "unix:$SERVER_SOCKET"
	port=${LISTENED##*:}
	proxy far 500
	read -r first second < <(pinged_ms "$port")
	((first >= 1000 && second >= 500 && second < 1000))
	proxy delay 500
	read -r first second < <(pinged_ms "$port")
	((first >= 500 && first < 1000))
}
