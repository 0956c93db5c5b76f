# The queue of a fair lock: contenders, and Redisson's threads J1, J2..., played by redis-cli. Sourced after helpers.bash,
# leftovers.bash and watching.bash; loads contenders.bash.
#
#   start_fair_contender CONTENDER [OPTION...] NAME...   starts a contender for fair locks
#   queue_fair_contender CONTENDER [OPTION...] NAME...   start_fair_contender; waits until it is last in the queue (of the last name)
#   queue_fair_contenders CONTENDER...     queue_fair_contender for the lock "a", one after the other
#   finish_all CONTENDER...                ends all commands, in any order
#   queue_is NAME CONTENDER...             whether exactly these contenders are in the queue of the lock, in this order
#   is_last NAME CONTENDER                 whether this contender is the last in the queue
#   owner_in_queue NAME CONTENDER          prints the contender's owner, as the queue stores it
#   set_deadline NAME CONTENDER AHEAD_MS   sets the contender's score: the time after which Redisson considers it dead
#   has_just_polled NAME OWNER             whether this waiter has renewed its heartbeat a moment ago
#   is_woken_by NAME CONTENDER COMMAND...  runs COMMAND, after which the contender must acquire the lock promptly
#   java_locks, java_unlocks CONTENDER NAME   acquire and release a lock as Redisson does
#   java_subscribes NAME CONTENDER         subscribes to the thread's channel until the process PID ends

load ../lib/contenders

# ---- rlock in the queue ----

start_fair_contender() {
	start_contender "$1" fair "${@:2}"
}

# queue_fair_contender: the contender gets a real-time priority, because a waiter that comes too late to its turn on a busy machine rightly loses its position.
queue_fair_contender() {
	local RENEWER
	start_fair_contender "$@"
	wait_until 10 is_last "${!#}" "$1"
	run_waiter_in_real_time "${PIDS[$1]}"
}

queue_fair_contenders() {
	local contender
	for contender; do
		queue_fair_contender "$contender" a
	done
}

finish_all() {
	end_commands
	finish_contenders "$@"
}

# ---- what is on the server ----

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

owner_in_queue() {
	case $2 in
	J*) echo "$JAVA_CLIENT:${2#J}" ;;
	*) redis lrange "redisson_lock_queue:{$1}" 0 -1 | grep ":${PIDS[$2]}\$" ;;
	esac
}

set_deadline() {
	redis zadd "redisson_lock_timeout:{$1}" $(($(server_ms) + $3)) "$(owner_in_queue "$1" "$2")" >/dev/null
}

# has_just_polled NAME OWNER: if true, the waiter makes no attempt in the next 1.5 s unless it is notified. So if it acquires the
# lock within this time, a notification woke it. A script on the server compares the times, since a process that reads the clock
# could start too late on a busy machine.
has_just_polled() {
	ask_server eval '
		local alive_until_ms = string.match(redis.call("HGET", KEYS[1], ARGV[1]) or "", "^%d+") or 0
		local now = redis.call("TIME")
		return alive_until_ms - now[1] * 1000 - now[2] / 1000 > 3500 and 1 or 0
	' 1 "rlock_waiters:{$1}" "$2" && [ "$ANSWER" = 1 ]
}

is_woken_by() {
	local owner
	owner=$(owner_in_queue "$1" "$2")
	wait_until 5 has_just_polled "$1" "$owner"
	are_waiting "$2"
	"${@:3}"
	enters_when_woken "$2"
}

# ---- Java ----

# java_does NAME CONTENDER SCRIPT: runs SCRIPT on the server. Before it come the lines with which all of Redisson's fair scripts
# begin: they remove waiters at the head of the queue whose deadline has passed.
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

# java_locks CONTENDER NAME: makes one attempt to acquire the lock. Prints nothing if it was acquired; otherwise joins the queue,
# and prints how long to wait, in ms.
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

# java_unlocks CONTENDER NAME: releases the lock, whose hold count must be 1.
java_unlocks() {
	java_does "$2" "$1" '
		redis.call("hdel", lock, owner)
		if head then
			redis.call("publish", channel .. ":" .. head, 0)
		end'
}

java_subscribes() {
	local channel
	channel="redisson_lock__channel:{$1}:$(owner_in_queue "$1" "$2")"
	in_background redis-cli -s "$SERVER_SOCKET" subscribe "$channel" >/dev/null
	wait_until 5 redis_says "$channel"$'\n1' pubsub numsub "$channel"
}
