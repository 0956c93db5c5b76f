# The servers of bench.sh, and the proxy in front of one of them. Sourced by bench.sh.

redis() {
	"$redis_cli" -s "$socket" "$@"
}

redis_says() {
	[ "$(redis "${@:2}")" = "$1" ]
}

start_servers() {
	local certificates=$work/certificates redis_port tls_port etcd_port peers redis_server
	read -r redis_port tls_port etcd_port peers < <(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
print(*(s.getsockname()[1] for s in sockets))')
	redis_server=$(command -v redis-server || command -v valkey-server)
	redis_cli=$(command -v redis-cli || command -v valkey-cli)
	socket=$work/redis.sock
	start "$redis_server" --bind 127.0.0.1 --port "$redis_port" --unixsocket "$socket" --save '' \
		--appendonly no --dir "$work" --logfile "$work/redis.log" --maxclients 4000
	wait_until 'the server answers' redis_says PONG ping
	export RLOCK_URL=unix://$socket
	tcp_url=redis://127.0.0.1:$redis_port
	fact server "$("$redis_server" --version | sed 's/ server v=\([^ ]*\).*/ \1/')"

	create_certificates "$certificates"
	start "$redis_server" --bind 127.0.0.1 --port 0 --tls-port "$tls_port" --tls-auth-clients no --save '' \
		--appendonly no --tls-cert-file "$certificates/server.crt" --tls-key-file "$certificates/server.key" \
		--tls-ca-cert-file "$certificates/ca.crt" --dir "$work" --logfile "$work/tls.log"
	tls_url="rediss://127.0.0.1:$tls_port?cacert=$certificates/ca.crt"
	wait_until 'the server answers over TLS' "$rlock" run -u "$tls_url" x -- true

	start "$proxy" tcp:127.0.0.1:0 "unix:$socket" "unix:$work/proxy.control" >"$work/proxy.ready"
	wait_until 'the proxy is ready' grep -q ready "$work/proxy.ready"
	proxy_address=$(grep -o '127.0.0.1:[0-9]*' "$work/proxy.ready" | head -n 1)

	etcd_url=
	if ! command -v etcd etcdctl >/dev/null; then
		return
	fi
	etcd_url=http://127.0.0.1:$etcd_port peers=http://127.0.0.1:$peers
	start etcd --data-dir "$work/etcd" --listen-client-urls "$etcd_url" \
		--advertise-client-urls "$etcd_url" --listen-peer-urls "$peers" \
		--initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers" \
		>"$work/etcd.log" 2>&1
	wait_until 'etcd answers' etcdctl --endpoints "$etcd_url" --command-timeout=1s get x
	fact etcd "$(etcd --version | sed -n 's/etcd Version: /etcd /p')"
}

# proxy COMMAND...: sends a command to the proxy.
proxy() {
	"$ask_redis" "$work/proxy.control" "$@"
}
