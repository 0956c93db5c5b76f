# Sentinels, and servers that they name as the master of a service. Sourced behind helpers.bash.

# choose_port sets PORT.
# shellcheck disable=SC2153

SERVICE=mymaster

# start_masters COUNT [OPTION...]: start_servers, each on a port, too; PORTS is the list of these.
start_masters() {
	local number
	export PORTS=
	for ((number = 1; number <= $1; number++)); do
		choose_port
		start_server_number "$number" --port "$PORT" --repl-diskless-sync yes --repl-diskless-sync-delay 0 "${@:2}"
		PORTS+="${PORTS:+ }$PORT"
	done
	use_first_server
}

# start_sentinels COUNT [LINE...]: so many, each with these lines in its configuration. SENTINELS is the list of their
# addresses, and RLOCK_URL names them.
start_sentinels() {
	local number dir
	export SENTINELS=
	for ((number = 1; number <= $1; number++)); do
		dir=$BATS_FILE_TMPDIR/sentinel-$number
		choose_port
		mkdir -p "$dir"
		printf '%s\n' "port $PORT" "dir $dir" "logfile $dir/log" 'sentinel resolve-hostnames no' "${@:2}" >"$dir/conf"
		redis-server "$dir/conf" --sentinel 3>&- &
		echo $! >"$dir/pid"
		SENTINELS+="${SENTINELS:+,}127.0.0.1:$PORT"
		wait_until 10 sentinel_answers "$number"
	done
	export RLOCK_URL=redis+sentinel://$SENTINELS/$SERVICE
}

sentinel_answers() {
	[ "$(on_sentinel "$1" ping 2>/dev/null)" = PONG ]
}

# on_sentinel NUMBER COMMAND [ARG...]: redis-cli has done it there.
on_sentinel() {
	local address
	address=$(cut -d , -f "$1" <<<"$SENTINELS")
	redis-cli -p "${address#*:}" "${@:2}"
}

sentinel_pid() {
	echo "$(<"$BATS_FILE_TMPDIR/sentinel-$1/pid")"
}

stop_sentinels() {
	local file
	for file in "$BATS_FILE_TMPDIR"/sentinel-*/pid; do
		kill_server_process "$(cat "$file")" "${file%/pid}"
	done
}

# name_master PORT [HOST [NUMBER...]]: these sentinels, or all three, name that server from now on, whatever it is.
name_master() {
	local number
	for number in "${@:3}" $([ $# -gt 2 ] || echo 1 2 3); do
		on_sentinel "$number" sentinel remove "$SERVICE" >/dev/null
		[ "$(on_sentinel "$number" sentinel monitor "$SERVICE" "${2:-127.0.0.1}" "$1" 2)" = OK ] || return
	done
}

# freeze_sentinels NUMBER...
freeze_sentinels() {
	local number
	for number; do kill -STOP "$(sentinel_pid "$number")"; done
}

# thaw_sentinels: all of them.
thaw_sentinels() {
	local number
	for number in 1 2 3; do kill -CONT "$(sentinel_pid "$number")"; done
}
