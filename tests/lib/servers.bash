# Several servers for a file, on unix sockets, with numbers from 1. Loaded by helpers.bash.
#
#   start_servers COUNT [OPTION...]         starts servers 1 to COUNT; `redis` then speaks to server 1
#   start_server_number NUMBER [OPTION...]  starts one server; also starts it again after it was killed
#   stop_servers                            kills all servers of the file
#   use_servers NUMBER...                   sets RLOCK_URL to these servers, and the array SERVERS to their numbers
#   take_servers COUNT                      as use_servers, with COUNT servers that no other test of the file uses
#   urls_of NUMBER...                       prints the URLs of these servers
#   on NUMBER COMMAND...                    runs COMMAND with `redis` connected to that server
#   on_each COMMAND...                      as on, for each of SERVERS; fails if COMMAND fails on one
#   use_first_server                        `redis` speaks to server 1
#   crash_server, revive_server, freeze_server, thaw_server NUMBER   SIGKILL, start without data, SIGSTOP, SIGCONT
#   socket_of, port_of NUMBER, server_count
#   is_older NUMBER SECONDS                 whether the server has run for at least SECONDS
#   start_proxy_to NUMBER [LISTEN], proxy_to NUMBER COMMAND...   start a faultproxy in front of a server; send it a command
#   faults_happened_at NUMBER               whether all faults that were ordered from the proxy of that server have happened

# start_servers COUNT [OPTION...]: takes the options of start_server. All tests of a file share the first three servers;
# take_servers gives a test servers from number 4 on.
start_servers() {
	local number starting=()
	for ((number = 1; number <= $1; number++)); do
		start_server_number "$number" "${@:2}" &
		starting+=($!)
	done
	wait "${starting[@]}"
	echo 3 >"$BATS_FILE_TMPDIR/taken"
	use_first_server
}

use_first_server() {
	SERVER_DIR=$BATS_FILE_TMPDIR/1/server
	SERVER_SOCKET=$(socket_of 1)
	SERVER_PID=$(<"$BATS_FILE_TMPDIR/1/pid")
	export SERVER_DIR SERVER_SOCKET SERVER_PID
}

start_server_number() {
	(
		BATS_FILE_TMPDIR=$BATS_FILE_TMPDIR/$1 start_server "${@:2}" &&
			echo "$SERVER_PID" >"$BATS_FILE_TMPDIR/$1/pid"
	)
}

stop_servers() {
	local file
	for file in "$BATS_FILE_TMPDIR"/[0-9]*/pid; do
		kill_server_process "$(cat "$file")" "${file%/pid}/server"
	done
}

socket_of() {
	echo "$BATS_FILE_TMPDIR/$1/server/redis.sock"
}

# find_server NUMBER: sets PID_OF_SERVER, without starting a process. False if the server has ended: another process may have its pid.
find_server() {
	read -r PID_OF_SERVER <"$BATS_FILE_TMPDIR/$1/pid"
	[ "/proc/$PID_OF_SERVER/cwd" -ef "$BATS_FILE_TMPDIR/$1/server" ]
}

# port_of NUMBER: prints the port of this server. PORTS: the ports of all servers that have one.
port_of() {
	cut -d ' ' -f "$1" <<<"$PORTS"
}

# server_count: prints how many servers have a port.
server_count() {
	wc -w <<<"$PORTS"
}

on() {
	local SERVER_SOCKET=$BATS_FILE_TMPDIR/$1/server/redis.sock
	"${@:2}"
}

on_each() {
	local number
	for number in "${SERVERS[@]}"; do
		on "$number" "$@" || {
			echo "not so on server $number: $*" >&2
			return 1
		}
	done
}

use_servers() {
	SERVERS=("$@")
	RLOCK_URL=$(urls_of "$@")
	export RLOCK_URL
}

# urls_of NUMBER...: prints the URLs separated by blanks. If the array VIA has an entry for a server, prints that instead of the
# server's URL.
urls_of() {
	local number urls=()
	for number; do
		urls+=("${VIA[number]:-unix://$(socket_of "$number")}")
	done
	echo "${urls[*]}"
}

take_servers() {
	local taken
	taken=$(cat "$BATS_FILE_TMPDIR/taken")
	echo $((taken + $1)) >"$BATS_FILE_TMPDIR/taken"
	mapfile -t SERVERS < <(seq $((taken + 1)) $((taken + $1)))
	file_exists "$BATS_FILE_TMPDIR/${SERVERS[-1]}/pid" || fail "setup_file starts too few servers"
	use_servers "${SERVERS[@]}"
}

crash_server() {
	find_server "$1"
	kill -KILL "$PID_OF_SERVER"
	wait_until 5 is_gone "$PID_OF_SERVER"
}

revive_server() {
	start_server_number "$1"
	find_server "$1"
	BACKGROUND+=("$PID_OF_SERVER")
}

freeze_server() {
	find_server "$1" && kill -STOP "$PID_OF_SERVER"
}

thaw_server() {
	find_server "$1" && kill -CONT "$PID_OF_SERVER"
}

is_older() {
	on "$1" ask_server info server && [[ $ANSWER =~ uptime_in_seconds:([0-9]+) ]] && ((BASH_REMATCH[1] >= $2))
}

# start_proxy_to NUMBER [LISTEN]: RLOCK_URL then leads to that server through tests/bin/faultproxy, which has a real-time priority, like
# the server.
start_proxy_to() {
	in_background sh -c 'exec "$@" >"$0"' "$BATS_TEST_TMPDIR/proxy-output-$1" faultproxy \
		"${2:-unix:$BATS_TEST_TMPDIR/proxy-$1.sock}" "unix:$(socket_of "$1")" \
		"unix:$BATS_TEST_TMPDIR/control-$1"
	wait_until 10 file_contains "$BATS_TEST_TMPDIR/proxy-output-$1" ready
	run_in_real_time "$PID"
	VIA[$1]=unix://$BATS_TEST_TMPDIR/proxy-$1.sock
	use_servers "${SERVERS[@]}"
}

proxy_to() {
	ask_redis "$BATS_TEST_TMPDIR/control-$1" "${@:2}"
}

faults_happened_at() {
	proxy_to "$1" state | grep -q rules=0
}
