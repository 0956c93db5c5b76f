#!/usr/bin/env bash
# The usual script without rlock: SET NX PX in a loop, and a Lua script that deletes the key if its value is still ours. The lock is never
# renewed.
#
#   redis_cli_lock.sh REDIS-CLI SOCKET NAME COMMAND [ARG...]
redis() {
	"$redis_cli" -s "$socket" "$@"
}

redis_cli=$1 socket=$2 name=$3
shift 3
token=$$-$RANDOM-$RANDOM
until [ "$(redis set "$name" "$token" nx px 30000)" = OK ]; do
	sleep 0.1
done
"$@"
status=$?
redis eval 'if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) end' \
	1 "$name" "$token" >/dev/null
exit "$status"
