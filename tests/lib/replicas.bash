# A master and its replica, which takes over. Sourced after helpers.bash.
#
#   start_replicated_servers                    starts the master "one" and its replica "two"; RLOCK_URL leads to the master
#   promote_replica                       makes "two" the master, for new connections
#   redis_at DIRECTORY COMMAND...         prints the reply of the server in DIRECTORY
#   start_server_in DIRECTORY [OPTION...] starts a server whose files are in DIRECTORY; sets PID
#   answers DIRECTORY                     whether that server answers
#   is_held_at DIRECTORY NAME             whether the lock's key exists there
#   is_in_sync                            whether the replica is connected to the master

redis_at() {
	ask_redis "$1/redis.sock" "${@:2}"
}

start_server_in() {
	mkdir -p "$1"
	in_background redis-server --port 0 --unixsocket "$PWD/$1/redis.sock" --save '' --appendonly no \
		--dir "$PWD/$1" --logfile "$PWD/$1/log" --repl-diskless-sync yes \
		--repl-diskless-sync-delay 0 "${@:2}"
	run_in_real_time "$PID"
	wait_until 10 answers "$1"
}

answers() {
	[ "$(redis_at "$1" ping 2>/dev/null)" = PONG ]
}

# start_replicated_servers: sets MASTER and REPLICA to the pids. RLOCK_URL names the symbolic link current.sock, which
# promote_replica changes.
start_replicated_servers() {
	start_server_in one || return
	MASTER=$PID
	# Replication needs a TCP port, and the master has only a socket: a proxy listens on a port for it.
	in_background sh -c 'exec "$@" >replica-proxy-output' sh \
		faultproxy tcp:127.0.0.1:0 "unix:$PWD/one/redis.sock" "unix:$PWD/replica-control"
	# A proxy that a busy machine delays would let the replica confirm too late: rlock waits a second for it.
	run_in_real_time "$PID"
	wait_until 5 file_contains replica-proxy-output ready || return
	start_server_in two --replicaof 127.0.0.1 "$(sed -n 's/^listen tcp:.*://p' replica-proxy-output)" || return
	REPLICA=$PID
	ln -s one/redis.sock current.sock
	export RLOCK_URL=unix://$PWD/current.sock
	wait_until 10 is_in_sync
}

is_held_at() {
	[ "$(redis_at "$1" exists "$2")" = 1 ]
}

is_in_sync() {
	redis_at two info replication | grep -q '^master_link_status:up'
}

promote_replica() {
	redis_at two replicaof no one >/dev/null
	ln -s two/redis.sock new.sock
	mv new.sock current.sock
}
