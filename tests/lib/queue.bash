# The queue of a fair lock: its waiters, which are contenders, and Java's threads in it, which are played by redis-cli and called
# "J1", "J2"... Sourced after helpers.bash, leftovers.bash and watching.bash.

load ../lib/contenders

# ---- rlock in the queue ----

# start_fair_contender CONTENDER [OPTION...] NAME...: a contender that wants these fair locks.
start_fair_contender() {
	start_contender "$1" fair "${@:2}"
}

# queue_fair_contender CONTENDER [OPTION...] NAME...: the same, and returns when it is the last one in the queue (of the last name).
queue_fair_contender() {
	start_fair_contender "$@"
	wait_until 10 is_last "${!#}" "$1"
}

# queue_fair_contenders CONTENDER...: for the lock "a", one behind the other.
queue_fair_contenders() {
	local contender
	for contender; do
		queue_fair_contender "$contender" a
	done
}

# Ends what is left in the queue, in any order.
finish_all() {
	end_commands
	finish_contenders "$@"
}

# ---- what is on the server ----

# queue_is NAME CONTENDER...
queue_is() {
	local owner
	local -a names=()
	while IFS= read -r owner; do
		case $owner in
		'') ;;
		"$JAVA_CLIENT":*) names+=("J${owner##*:}") ;;
		*) names+=("${CONTENDER_OF[${owner##*:}]:-$owner}") ;;
		esac
	done < <(redis lrange "redisson_lock_queue:{$1}" 0 -1)
	[ "${names[*]}" = "${*:2}" ]
}

is_last() {
	ask_server lindex "redisson_lock_queue:{$1}" -1 && [[ $ANSWER == *:${PIDS[$2]} ]]
}

# owner_in_queue NAME CONTENDER
owner_in_queue() {
	case $2 in
	J*) echo "$JAVA_CLIENT:${2#J}" ;;
	*) redis lrange "redisson_lock_queue:{$1}" 0 -1 | grep ":${PIDS[$2]}\$" ;;
	esac
}

# set_deadline NAME CONTENDER AHEAD_MS
set_deadline() {
	redis zadd "redisson_lock_timeout:{$1}" $(($(server_ms) + $3)) "$(owner_in_queue "$1" "$2")" >/dev/null
}

# has_just_polled NAME OWNER: it won't look again by itself for one and a half seconds. The server compares with its own clock: on a
# busy machine a process that asks for the time may start so late that no look seems to be of just now.
has_just_polled() {
	ask_server eval '
		local alive_until_ms = string.match(redis.call("HGET", KEYS[1], ARGV[1]) or "", "^%d+") or 0
		local now = redis.call("TIME")
		return alive_until_ms - now[1] * 1000 - now[2] / 1000 > 3500 and 1 or 0
	' 1 "rlock_waiters:{$1}" "$2" && [ "$ANSWER" = 1 ]
}

# is_woken_by NAME CONTENDER COMMAND [ARG...]: the head gets in promptly once the command is done.
is_woken_by() {
	local owner
	owner=$(owner_in_queue "$1" "$2")
	wait_until 5 has_just_polled "$1" "$owner"
	are_waiting "$2"
	"${@:3}"
	enters_when_woken "$2"
}

# ---- Java ----

# java_does NAME CONTENDER SCRIPT [ARG...]: a script of the effect of one of Redisson's.
java_does() {
	redis eval '
		local lock, queue, deadlines, channel = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
		local owner, now = ARGV[1], tonumber(ARGV[2])
		local head = redis.call("lindex", queue, 0)
		while head do
			local deadline = redis.call("zscore", deadlines, head)
			if not deadline or tonumber(deadline) > now then
				break
			end
			redis.call("zrem", deadlines, head)
			redis.call("lpop", queue)
			head = redis.call("lindex", queue, 0)
		end
		'"$3" 4 "$1" "redisson_lock_queue:{$1}" "redisson_lock_timeout:{$1}" "redisson_lock__channel:{$1}" \
		"$JAVA_CLIENT:${2#J}" "$(server_ms)"
}

# java_locks CONTENDER NAME: one try, which puts it into the queue. Prints nothing when the lock was acquired, else how long to sleep.
java_locks() {
	java_does "$2" "$1" '
		local wait_ms = 300000
		if redis.call("exists", lock) == 0 and (not head or head == owner) then
			redis.call("lpop", queue)
			redis.call("zrem", deadlines, owner)
			for _, other in ipairs(redis.call("zrange", deadlines, 0, -1)) do
				redis.call("zincrby", deadlines, -wait_ms, other)
			end
			redis.call("hset", lock, owner, 1)
			redis.call("pexpire", lock, 30000)
			return nil
		end
		if redis.call("zscore", deadlines, owner) then
			return math.max(redis.call("pttl", lock), 0)
		end
		local last, ttl = redis.call("lindex", queue, -1), nil
		local before = last and redis.call("zscore", deadlines, last)
		if before then
			ttl = tonumber(before) - now
		else
			ttl = redis.call("pttl", lock)
		end
		if redis.call("zadd", deadlines, ttl + wait_ms + now, owner) == 1 then
			redis.call("rpush", queue, owner)
		end
		return ttl'
}

# java_unlocks CONTENDER NAME: a lock that it holds once.
java_unlocks() {
	java_does "$2" "$1" '
		redis.call("hdel", lock, owner)
		if head then
			redis.call("publish", channel .. ":" .. head, 0)
		end'
}

# java_subscribes NAME CONTENDER: as long as the process PID lives, the thread listens to its channel.
java_subscribes() {
	local channel
	channel="redisson_lock__channel:{$1}:$(owner_in_queue "$1" "$2")"
	in_background redis-cli -s "$SERVER_SOCKET" subscribe "$channel" >/dev/null
	wait_until 5 redis_says "$channel"$'\n1' pubsub numsub "$channel"
}
