# Several servers for each file, on unix sockets, as start_server starts one: they crash, hang and come back one by one.
# Loaded by helpers.bash.

# start_servers COUNT [OPTION...]: such servers, with numbers from 1; `redis` speaks to the first. The first
# three are for all tests, the others for take_servers.
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

# `redis` speaks to the first server from now on.
use_first_server() {
	SERVER_DIR=$BATS_FILE_TMPDIR/1/server
	SERVER_SOCKET=$(socket_of 1)
	SERVER_PID=$(<"$BATS_FILE_TMPDIR/1/pid")
	export SERVER_DIR SERVER_SOCKET SERVER_PID
}

# Again, too, when it has been killed.
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

# find_server NUMBER: sets PID_OF_SERVER, without a process.
find_server() {
	read -r PID_OF_SERVER <"$BATS_FILE_TMPDIR/$1/pid"
}

# port_of NUMBER: that of a server with a port; PORTS is the list of these.
port_of() {
	cut -d ' ' -f "$1" <<<"$PORTS"
}

# server_count: how many there are with a port.
server_count() {
	wc -w <<<"$PORTS"
}

# on NUMBER COMMAND [ARG...]: `redis`, and all that is made of it, speaks to that server.
on() {
	local SERVER_SOCKET=$BATS_FILE_TMPDIR/$1/server/redis.sock
	"${@:2}"
}

# on_each COMMAND [ARG...]: succeeds on every server of the array SERVERS.
on_each() {
	local number
	for number in "${SERVERS[@]}"; do
		on "$number" "$@" || {
			echo "not so on server $number: $*" >&2
			return 1
		}
	done
}

# use_servers NUMBER...: RLOCK_URL names these, and the array SERVERS.
use_servers() {
	SERVERS=("$@")
	RLOCK_URL=$(urls_of "$@")
	export RLOCK_URL
}

# urls_of NUMBER...: with blanks between. What the array VIA has for one is used instead.
urls_of() {
	local number urls=()
	for number; do
		urls+=("${VIA[number]:-unix://$(socket_of "$number")}")
	done
	echo "${urls[*]}"
}

# take_servers COUNT: as use_servers, with some that no other test will meet.
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

# It comes back, without its data.
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

# is_older NUMBER SECONDS: the server has run for so long at least.
is_older() {
	on "$1" ask_server info server && [[ $ANSWER =~ uptime_in_seconds:([0-9]+) ]] && ((BASH_REMATCH[1] >= $2))
}

# start_proxy_to NUMBER [LISTEN]: tests/bin/faultproxy is between us and that server from now on.
start_proxy_to() {
	in_background sh -c 'exec "$@" >"$0"' "$BATS_TEST_TMPDIR/proxy-output-$1" faultproxy \
		"${2:-unix:$BATS_TEST_TMPDIR/proxy-$1.sock}" "unix:$(socket_of "$1")" \
		"unix:$BATS_TEST_TMPDIR/control-$1"
	wait_until 10 file_contains "$BATS_TEST_TMPDIR/proxy-output-$1" ready
	VIA[$1]=unix://$BATS_TEST_TMPDIR/proxy-$1.sock
	use_servers "${SERVERS[@]}"
}

# proxy_to NUMBER COMMAND [ARG...]
proxy_to() {
	ask_redis "$BATS_TEST_TMPDIR/control-$1" "${@:2}"
}
