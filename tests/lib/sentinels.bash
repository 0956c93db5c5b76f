# Sentinels, and servers that they name as the master of a service. Sourced after helpers.bash.

SERVICE=mymaster

# start_masters COUNT [OPTION...]: start_servers, each on a port, too; PORTS is the list of these.
start_masters() {
	local number
	export PORTS=
	for ((number = 1; number <= $1; number++)); do
		on_free_port choose_port start_server_number "$number" --port @PORT@ --repl-diskless-sync yes \
			--repl-diskless-sync-delay 0 "${@:2}"
		PORTS+="${PORTS:+ }$PORT"
	done
	use_first_server
}

# start_sentinels COUNT [LINE...]: so many, each with these lines in its configuration. SENTINELS is the list of their
# addresses, and RLOCK_URL names them.
start_sentinels() {
	local number
	export SENTINELS=
	for ((number = 1; number <= $1; number++)); do
		on_free_port choose_port start_sentinel "$number" "${@:2}"
		SENTINELS+="${SENTINELS:+,}127.0.0.1:$PORT"
	done
	export RLOCK_URL=redis+sentinel://$SENTINELS/$SERVICE
}

# start_sentinel NUMBER [LINE...]: on PORT.
start_sentinel() {
	local dir=$BATS_FILE_TMPDIR/sentinel-$1 pid
	mkdir -p "$dir"
	printf '%s\n' "port $PORT" "dir $dir" "logfile $dir/log" 'sentinel resolve-hostnames no' "${@:2}" >"$dir/conf"
	redis-server "$dir/conf" --sentinel 3>&- &
	pid=$!
	echo "$pid" >"$dir/pid"
	wait_until 10 sentinel_has_begun "$pid" && is_running "$pid"
}

# sentinel_has_begun PID: it answers on PORT, and no other one does, or it has ended.
sentinel_has_begun() {
	local SERVER_SOCKET=$PORT
	is_gone "$1" || { ask_server info server 2>/dev/null && [[ $ANSWER = *process_id:"$1"[!0-9]* ]]; }
}

# on_sentinel NUMBER COMMAND [ARG...]: prints its reply.
on_sentinel() {
	ask_sentinel "$@" && echo "$ANSWER"
}

# ask_sentinel NUMBER COMMAND [ARG...]: ask_server of that one.
ask_sentinel() {
	local addresses SERVER_SOCKET
	IFS=, read -ra addresses <<<"$SENTINELS"
	SERVER_SOCKET=${addresses[$1 - 1]#*:}
	ask_server "${@:2}"
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

# name_master PORT [HOST]: all three sentinels name that server from now on, whatever it is.
name_master() {
	local number
	for number in 1 2 3; do
		ask_sentinel "$number" sentinel remove "$SERVICE"
		ask_sentinel "$number" sentinel monitor "$SERVICE" "${2:-127.0.0.1}" "$1" 2 && [ "$ANSWER" = OK ] || return
	done
}

# name_master_at NUMBER SERVER [EPOCH]: that sentinel alone names that server, from a configuration of that epoch. No other
# sentinel hears of it, since no server has both as its replicas' master.
name_master_at() {
	ask_sentinel "$1" sentinel remove "$SERVICE"
	ask_sentinel "$1" sentinel monitor "$SERVICE" 127.0.0.1 "$(port_of "$2")" 2 && [ "$ANSWER" = OK ] || return
	[ -n "${3:-}" ] || return 0
	ask_sentinel "$1" publish __sentinel__:hello "127.0.0.1,1,$(printf '%040d' 7),$3,$SERVICE,127.0.0.1,$(port_of "$2"),$3"
	wait_until 5 has_epoch "$1" "$3"
}

# has_epoch NUMBER EPOCH
has_epoch() {
	ask_sentinel "$1" sentinel master "$SERVICE" && [[ $ANSWER = *"config-epoch"$'\n'"$2"$'\n'* ]]
}

# sentinels_url NUMBER...: the URL of these alone.
sentinels_url() {
	local addresses number list=
	IFS=, read -ra addresses <<<"$SENTINELS"
	for number; do list+="${list:+,}${addresses[number - 1]}"; done
	echo "redis+sentinel://$list/$SERVICE"
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

# ---- real failovers ----

# start_failover_group COUNT [OPTION...]: so many servers, of which the first is the master of all others, and three
# sentinels that see to them. The options are the servers'.
start_failover_group() {
	local number
	start_masters "$@"
	for number in $(seq 2 "$1"); do
		on "$number" redis replicaof 127.0.0.1 "$(port_of 1)" >/dev/null
	done
	start_sentinels 3 "sentinel monitor $SERVICE 127.0.0.1 $(port_of 1) 2" \
		"sentinel down-after-milliseconds $SERVICE 1000" "sentinel failover-timeout $SERVICE 4000"
}

# master: the number of the one that most sentinels name.
master() {
	for number in 1 2 3; do
		master_of_sentinel "$number"
	done | sort | uniq -c | sort -rn | awk '{ print $2; exit }'
}

# master_of_sentinel NUMBER: the number of the one that this sentinel names.
master_of_sentinel() {
	ask_sentinel "$1" sentinel get-master-addr-by-name "$SERVICE" || return
	tr ' ' '\n' <<<"$PORTS" | grep -nx "${ANSWER##*$'\n'}" | cut -d : -f 1
}

# replicas: the numbers of the others.
replicas() {
	seq "$(server_count)" | grep -vx "$(master)"
}

# is_group_ready: each sentinel knows all servers and the other sentinels, and the replicas have what the master has.
is_group_ready() {
	local number others
	others=$(($(server_count) - 1))
	for number in 1 2 3; do
		ask_sentinel "$number" sentinel ckquorum "$SERVICE" && [[ $ANSWER = 'OK 3 '* ]] || return
		ask_sentinel "$number" sentinel replicas "$SERVICE" || return
		[ "$(grep -cx 'master-link-status' <<<"$ANSWER")" = "$others" ] || return
		[[ $ANSWER != *s_down* && $ANSWER != *disconnected* ]] || return
	done
	has_role master "$(master)" || return
	for number in $(replicas); do
		on "$number" ask_server info replication && [[ $ANSWER = *master_link_status:up* ]] || return
	done
}

# is_master NUMBER: the sentinels name it, and it is one.
is_master() {
	[ "$(master)" = "$1" ] && has_role master "$1"
}

# has_role ROLE NUMBER
has_role() {
	on "$2" ask_server role && [[ $ANSWER = "$1"* ]]
}

# has_left NUMBER: another server is the master. Ordered again, if the sentinels have given up an earlier order; not of a
# sentinel that has carried it out before the others know: it would go back to the old master.
has_left() {
	local number
	number=$(master)
	if [ "$number" = "$1" ]; then
		[ "$(master_of_sentinel 1)" != "$1" ] || ask_sentinel 1 sentinel failover "$SERVICE"
		return 1
	fi
	is_master "$number"
}

# revive_replica NUMBER [OPTION...]: a server that was crashed is a replica of the master now.
revive_replica() {
	start_server_number "$1" --port "$(port_of "$1")" --repl-diskless-sync yes --repl-diskless-sync-delay 0 \
		--replicaof 127.0.0.1 "$(port_of "$(master)")" "${@:2}"
}
