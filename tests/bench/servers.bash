# The servers that bench.sh measures with, and the proxies before them. Sourced by it.

# It sets what is read here, and reads what is set.
# shellcheck disable=SC2034,SC2154

redis() {
	"$redis_cli" -s "$socket" "$@"
}

start_redis() {
	redis_server=$(first_of redis-server valkey-server)
	redis_cli=$(first_of redis-cli valkey-cli)
	socket=$work/redis.sock
	start "$redis_server" --bind 127.0.0.1 --port "$redis_port" --unixsocket "$socket" --save '' \
		--appendonly no --dir "$work" --logfile "$work/redis.log" --maxclients 4000
	wait_until 'the server answers' redis ping
	redis acl setuser bench on '>secret' '~*' '&*' +@all >/dev/null
	export RLOCK_URL=unix://$socket
	tcp_url=redis://127.0.0.1:$redis_port
	fact server "$("$redis_server" --version | sed 's/ server v=\([^ ]*\).*/ \1/')"
}

tls_answers() {
	"$rlock" run -u "$tls_url" x -- true
}

start_tls() {
	local certificates=$work/certificates
	certificates "$certificates"
	start "$redis_server" --bind 127.0.0.1 --port 0 --tls-port "$tls_port" --tls-auth-clients no --save '' \
		--appendonly no --tls-cert-file "$certificates/server.crt" --tls-key-file "$certificates/server.key" \
		--tls-ca-cert-file "$certificates/ca.crt" --dir "$work" --logfile "$work/tls.log"
	tls_url="rediss://127.0.0.1:$tls_port?cacert=$certificates/ca.crt"
	wait_until 'the server answers over TLS' tls_answers
}

server_is_empty() {
	[ "$(redis dbsize)" = 0 ]
}

etcd_answers() {
	etcdctl --endpoints "$etcd_url" --command-timeout=1s get x
}

start_etcd() {
	local peers=http://127.0.0.1:$etcd_peer_port
	etcd_url=
	if ! has etcd || ! has etcdctl; then
		return
	fi
	etcd_url=http://127.0.0.1:$etcd_port
	start etcd --data-dir "$work/etcd" --listen-client-urls "$etcd_url" \
		--advertise-client-urls "$etcd_url" --listen-peer-urls "$peers" \
		--initial-advertise-peer-urls "$peers" --initial-cluster "default=$peers" \
		>"$work/etcd.log" 2>&1
	wait_until 'etcd answers' etcd_answers
	fact etcd "$(etcd --version | sed -n 's/etcd Version: /etcd /p')"
}

# start_proxy SERVER TARGET: sets ADDRESS.
start_proxy() {
	start "$proxy" tcp:127.0.0.1:0 "$2" "unix:$work/$1.control" >"$work/$1.proxy"
	wait_until 'the proxy is ready' grep -q ready "$work/$1.proxy"
	ADDRESS=$(grep -o '127.0.0.1:[0-9]*' "$work/$1.proxy" | head -n 1)
}

start_proxies() {
	start_proxy redis "unix:$socket"
	proxy_address=$ADDRESS
	far_etcd_url=
	if [ -n "$etcd_url" ]; then
		start_proxy etcd "tcp:${etcd_url#http://}"
		far_etcd_url=http://$ADDRESS
	fi
}

# proxy SERVER COMMAND...
proxy() {
	"$ask_redis" "$work/$1.control" "${@:2}"
}

# counted FIELD: since the last `reset-count`.
counted() {
	proxy redis count | tr ' ' '\n' | sed -n "s/^$1=//p"
}
