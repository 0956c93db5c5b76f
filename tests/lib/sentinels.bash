# Sentinels, and the servers that they monitor. Sourced after helpers.bash.
#
#   start_masters COUNT [OPTION...]          start_servers, each also on a port; sets PORTS
#   start_sentinels COUNT [LINE...]          starts sentinels with these lines of configuration; sets SENTINELS and RLOCK_URL
#   on_sentinel, ask_sentinel NUMBER COMMAND...   print, or set ANSWER to, the sentinel's reply
#   sentinel_pid NUMBER, stop_sentinels, freeze_sentinels NUMBER..., thaw_sentinels, signal_sentinels SIGNAL NUMBER...   their processes
#   set_master PORT [HOST]                  makes all three sentinels name this server as the master
#   set_master_at NUMBER SERVER [EPOCH]     makes one sentinel name another server, at this epoch
#   has_epoch NUMBER EPOCH                   whether the sentinel's configuration has this epoch
#   sentinels_url NUMBER...                  prints the URL of these sentinels
#   start_failover_group COUNT [OPTION...]   a master, COUNT - 1 replicas and three sentinels, for real failovers
#   master, replicas                         print the number of the master; the numbers of the others
#   is_group_ready                           whether a failover can begin: all know each other, and the replicas are in sync
#   is_master, has_role, has_failed_over_from            the roles of servers
#   revive_replica NUMBER [OPTION...]        restarts a crashed server as a replica of the master

SERVICE=mymaster

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

start_sentinels() {
	local number
	export SENTINELS=
	for ((number = 1; number <= $1; number++)); do
		on_free_port choose_port start_sentinel "$number" "${@:2}"
		SENTINELS+="${SENTINELS:+,}127.0.0.1:$PORT"
	done
	export RLOCK_URL=redis+sentinel://$SENTINELS/$SERVICE
}

# start_sentinel NUMBER [LINE...]: starts a sentinel on PORT.
start_sentinel() {
	local dir=$BATS_FILE_TMPDIR/sentinel-$1 pid
	mkdir -p "$dir"
	printf '%s\n' "port $PORT" "dir $dir" "logfile $dir/log" 'sentinel resolve-hostnames no' "${@:2}" >"$dir/conf"
	redis-server "$dir/conf" --sentinel 3>&- &
	pid=$!
	run_in_real_time "$pid"
	echo "$pid" >"$dir/pid"
	wait_until 10 sentinel_has_begun "$pid" && is_running "$pid"
}

# sentinel_has_begun PID: whether this sentinel itself answers on PORT, and not a process of another run of tests; or whether it
# has ended.
sentinel_has_begun() {
	local SERVER_SOCKET=$PORT
	is_gone "$1" || { ask_server info server 2>/dev/null && [[ $ANSWER = *process_id:"$1"[!0-9]* ]]; }
}

on_sentinel() {
	ask_sentinel "$@" && echo "$ANSWER"
}

ask_sentinel() {
	local addresses SERVER_SOCKET
	IFS=, read -ra addresses <<<"$SENTINELS"
	SERVER_SOCKET=${addresses[$1 - 1]#*:}
	ask_server "${@:2}"
}

sentinel_pid() {
	echo "$(<"$BATS_FILE_TMPDIR/sentinel-$1/pid")"
}

# signal_sentinels SIGNAL NUMBER...: starts no process, since some tests must send two signals within a second.
signal_sentinels() {
	local number pid
	for number in "${@:2}"; do
		read -r pid <"$BATS_FILE_TMPDIR/sentinel-$number/pid"
		kill "-$1" "$pid"
	done
}

stop_sentinels() {
	local file
	for file in "$BATS_FILE_TMPDIR"/sentinel-*/pid; do
		kill_server_process "$(cat "$file")" "${file%/pid}"
	done
}

# set_master PORT [HOST]: does not check that the server is a master.
set_master() {
	local number
	for number in 1 2 3; do
		ask_sentinel "$number" sentinel remove "$SERVICE"
		ask_sentinel "$number" sentinel monitor "$SERVICE" "${2:-127.0.0.1}" "$1" 2 && [ "$ANSWER" = OK ] || return
	done
}

# set_master_at NUMBER SERVER [EPOCH]: the other sentinels do not learn of the change, since sentinels find each other only
# through a common master.
set_master_at() {
	ask_sentinel "$1" sentinel remove "$SERVICE"
	ask_sentinel "$1" sentinel monitor "$SERVICE" 127.0.0.1 "$(port_of "$2")" 2 && [ "$ANSWER" = OK ] || return
	[ -n "${3:-}" ] || return 0
	ask_sentinel "$1" publish __sentinel__:hello "127.0.0.1,1,$(printf '%040d' 7),$3,$SERVICE,127.0.0.1,$(port_of "$2"),$3"
	wait_until 5 has_epoch "$1" "$3"
}

has_epoch() {
	ask_sentinel "$1" sentinel master "$SERVICE" && [[ $ANSWER = *"config-epoch"$'\n'"$2"$'\n'* ]]
}

sentinels_url() {
	local addresses number list=
	IFS=, read -ra addresses <<<"$SENTINELS"
	for number; do list+="${list:+,}${addresses[number - 1]}"; done
	echo "redis+sentinel://$list/$SERVICE"
}

freeze_sentinels() {
	signal_sentinels STOP "$@"
}

thaw_sentinels() {
	signal_sentinels CONT 1 2 3
}

# ---- real failovers ----

# start_failover_group COUNT [OPTION...]: server 1 is the first master. The options are for the servers.
start_failover_group() {
	local number
	start_masters "$@"
	for number in $(seq 2 "$1"); do
		on "$number" redis replicaof 127.0.0.1 "$(port_of 1)" >/dev/null
	done
	start_sentinels 3 "sentinel monitor $SERVICE 127.0.0.1 $(port_of 1) 2" \
		"sentinel down-after-milliseconds $SERVICE 1000" "sentinel failover-timeout $SERVICE 4000"
}

# master: prints the number of the server that most sentinels name as the master.
master() {
	for number in 1 2 3; do
		master_of_sentinel "$number"
	done | sort | uniq -c | sort -rn | awk '{ print $2; exit }'
}

# master_of_sentinel NUMBER: prints the number of the server that this sentinel names.
master_of_sentinel() {
	ask_sentinel "$1" sentinel get-master-addr-by-name "$SERVICE" || return
	tr ' ' '\n' <<<"$PORTS" | grep -nx "${ANSWER##*$'\n'}" | cut -d : -f 1
}

replicas() {
	seq "$(server_count)" | grep -vx "$(master)"
}

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

# is_master NUMBER: whether the sentinels name the server, and its role is master.
is_master() {
	[ "$(master)" = "$1" ] && has_role master "$1"
}

# has_role ROLE NUMBER: whether the server has this role.
has_role() {
	on "$2" ask_server role && [[ $ANSWER = "$1"* ]]
}

# has_failed_over_from NUMBER: whether another server than NUMBER is the master. If not, sends SENTINEL FAILOVER, again at each
# call, since the sentinels may have ended an earlier failover without success. Does not send it to a sentinel that already names
# the new master: that would make the old one the master again.
has_failed_over_from() {
	local number
	number=$(master)
	if [ "$number" = "$1" ]; then
		[ "$(master_of_sentinel 1)" != "$1" ] || ask_sentinel 1 sentinel failover "$SERVICE"
		return 1
	fi
	is_master "$number"
}

revive_replica() {
	start_server_number "$1" --port "$(port_of "$1")" --repl-diskless-sync yes --repl-diskless-sync-delay 0 \
		--replicaof 127.0.0.1 "$(port_of "$(master)")" "${@:2}"
}
