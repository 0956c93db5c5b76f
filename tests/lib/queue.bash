# The queue of a fair lock: its waiters, and Java's threads in it, which are played by redis-cli. Sourced
# after helpers.bash, leftovers.bash and watching.bash. PARTY is "r1", "r2"... for an rlock, and "J1", "J2"...
# for a thread of a Java service.

JAVA_CLIENT=0b6b7a90-65cd-4b1f-8ee4-26f2a4f2bf7e

declare -gA PIDS=()   # of an rlock, by PARTY
declare -gA PARTY_OF=() # the way back
CLOCK=()              # goes before an rlock: see clock_is_off in clocks.bash
STEPS=(-v)            # an option of waiters, whose messages tell whether they were woken; none where a test counts messages

# ---- rlock in the queue ----

# start_waiter PARTY [OPTION...] NAME...: an rlock that wants these fair locks, for a command that stays until
# `let_leave PARTY`. Its messages are in the file "said-PARTY".
start_waiter() {
	in_background sh -c 'party=$0; exec "$@" inside "$party" 2>"$BATS_TEST_TMPDIR/said-$party"' \
		"$1" "${CLOCK[@]}" rlock fair "${STEPS[@]}" "${@:2}" --
	PIDS[$1]=$PID PARTY_OF[$PID]=$1
}

# queue_waiter PARTY [OPTION...] NAME...: the same, and returns when it is the last one in the queue (of the last name).
queue_waiter() {
	start_waiter "$@"
	wait_until 10 is_last "${!#}" "$1"
}

# queue_passer PARTY [OPTION...] NAME...: as queue_waiter, but its command ends at once, with PARTY in the file "order".
queue_passer() {
	in_background "${CLOCK[@]}" rlock fair "${@:2}" -- \
		sh -c 'echo "$0" >>"$BATS_TEST_TMPDIR/order"' "$1"
	PIDS[$1]=$PID PARTY_OF[$PID]=$1
	wait_until 10 is_last "${!#}" "$1"
}

await_entry() {
	wait_until "${2:-5}" is_inside "$1"
}

# is_waiting PARTY: it runs, and did not get in.
is_waiting() {
	! is_inside "$1" && is_running "${PIDS[$1]}"
}

# let_leave PARTY: its command ends, and then rlock, well.
let_leave() {
	: >"$BATS_TEST_TMPDIR/out-$1"
	ended_with 0 "${PIDS[$1]}"
}

# start_holder PARTY VERB NAME [OPTION...]: a holder, of whatever kind; it stays until `let_leave PARTY`.
start_holder() {
	in_background rlock "$2" "${@:4}" "$3" -- inside "$1"
	PIDS[$1]=$PID PARTY_OF[$PID]=$1
	await_entry "$1"
}

# Ends what is left in the queue, in any order.
let_all_leave() {
	let_go
	local party
	for party; do
		ended_with 0 "${PIDS[$party]}"
	done
}

# queue_waiters PARTY...: for the lock "a", one behind the other.
queue_waiters() {
	local party
	for party; do
		queue_waiter "$party" a
	done
}

# take_turns PARTY...: each gets in, and leaves, in this order.
take_turns() {
	local party
	while [ $# -gt 0 ]; do
		await_entry "$1"
		for party in "${@:2}"; do
			is_waiting "$party"
		done
		let_leave "$1"
		shift
	done
}

# kill_waiter PARTY: at once, with its renewer and its command if it has any.
kill_waiter() { kill_whole "${PIDS[$1]}"; }

# ---- what is on the server ----

# keys_of NAME: sets the names of what belongs to a fair lock, without a process.
keys_of() {
	local BRACED
	find_braced "$1"
	CHANNEL=redisson_lock__channel:$BRACED
	QUEUE_KEY=redisson_lock_queue:$BRACED
	DEADLINES_KEY=redisson_lock_timeout:$BRACED
	WAITERS_KEY=rlock_waiters:$BRACED
}

channel() { keys_of "$1" && echo "$CHANNEL"; }
queue_key() { keys_of "$1" && echo "$QUEUE_KEY"; }
deadlines_key() { keys_of "$1" && echo "$DEADLINES_KEY"; }
waiters_key() { keys_of "$1" && echo "$WAITERS_KEY"; }

# The owners in the queue, the first one first.
queue_owners() {
	keys_of "$1" && redis lrange "$QUEUE_KEY" 0 -1
}

# queue_names NAME: the parties in its queue.
queue_names() {
	find_queue "$1"
	echo "${IN_QUEUE[*]}"
}

# find_queue NAME: sets IN_QUEUE to them, without a process.
find_queue() {
	keys_of "$1"
	ask_server lrange "$QUEUE_KEY" 0 -1
	name_parties "$ANSWER"
}

# name_parties OWNERS: sets IN_QUEUE to the parties that these are.
name_parties() {
	local owner
	IN_QUEUE=()
	while IFS= read -r owner; do
		case $owner in
		'') ;;
		"$JAVA_CLIENT":*) IN_QUEUE+=("J${owner##*:}") ;;
		*) IN_QUEUE+=("${PARTY_OF[${owner##*:}]:-$owner}") ;;
		esac
	done <<<"$1"
}

queue_is() {
	local IN_QUEUE
	find_queue "$1"
	[ "${IN_QUEUE[*]}" = "${*:2}" ]
}

# queue_becomes SECONDS NAME PARTY...
queue_becomes() {
	wait_until "$1" queue_is "${@:2}" || {
		echo "the queue is: $(queue_names "$2")" >&2
		return 1
	}
}

is_last() {
	keys_of "$1" && ask_server lindex "$QUEUE_KEY" -1 && [[ $ANSWER == *:${PIDS[$2]} ]]
}

# owner_in_queue NAME PARTY
owner_in_queue() {
	case $2 in
	J*) echo "$JAVA_CLIENT:${2#J}" ;;
	*)
		keys_of "$1" && ask_server lrange "$QUEUE_KEY" 0 -1 &&
			[[ $'\n'$ANSWER$'\n' =~ $'\n'([^$'\n']*":${PIDS[$2]}")$'\n' ]] && echo "${BASH_REMATCH[1]}"
		;;
	esac
}

# ahead_ms NAME PARTY: how far its deadline is ahead.
ahead_ms() {
	local score
	score=$(redis zscore "$(deadlines_key "$1")" "$(owner_in_queue "$1" "$2")")
	echo $((${score%.*} - $(server_ms)))
}

# set_deadline NAME PARTY AHEAD_MS
set_deadline() {
	redis zadd "$(deadlines_key "$1")" $(($(server_ms) + $3)) "$(owner_in_queue "$1" "$2")" >/dev/null
}

# find_life_ms NAME PARTY: sets LIFE_MS to how long it need not be heard of, without a process.
find_life_ms() {
	keys_of "$1"
	ask_server eval '
		local now = redis.call("time")
		for _, owner in ipairs(redis.call("lrange", KEYS[1], 0, -1)) do
			if owner:sub(-#ARGV[1]) == ARGV[1] then
				local alive_until_ms = redis.call("hget", KEYS[2], owner):match("^%d+")
				return alive_until_ms - now[1] * 1000 - math.floor(now[2] / 1000)
			end
		end' 2 "$QUEUE_KEY" "$WAITERS_KEY" ":${PIDS[$2]}" && LIFE_MS=$ANSWER
}

# listens_since NAME PARTY: by its own word, in ms; 0 when it does not listen.
listens_since() {
	local owner fields
	owner=$(owner_in_queue "$1" "$2")
	keys_of "$1" && ask_server hget "$WAITERS_KEY" "$owner"
	read -ra fields <<<"$ANSWER"
	echo "${fields[3]-}"
}

# says_it_listens NAME PARTY 0|1: by its own word.
says_it_listens() {
	local since
	since=$(listens_since "$1" "$2")
	[ -n "$since" ] && [ "$((since > 0))" = "$3" ]
}

# is_listened_to NAME PARTY: its own channel, by itself.
is_listened_to() {
	keys_of "$1" && ask_server pubsub numsub "$CHANNEL:$(owner_in_queue "$1" "$2")" && [[ $ANSWER = *$'\n1' ]]
}

# has_just_looked NAME PARTY: it won't look again by itself for one and a half seconds.
has_just_looked() {
	find_life_ms "$1" "$2" && [ "$LIFE_MS" -gt 3500 ]
}

# In the last two seconds.
is_heard_of() {
	find_life_ms "$1" "$2" && [ "$LIFE_MS" -gt 2000 ]
}

# Of the list, the set and the signs of life nothing is there.
has_no_queue() {
	keys_of "$1" && redis_says 0 exists "$QUEUE_KEY" "$DEADLINES_KEY" "$WAITERS_KEY"
}

# Nothing at all is left.
nothing_is_left() {
	wait_until 5 no_keys
	wait_until 5 nothing_is_listened_to
	wait_until 5 nothing_runs
}

# queue_strangers NAME COUNT SINCE_US ALIVE_MS [left]: so many waiters of ours, which have no process, join the queue behind
# all others, or in front of them. They came since that time, one us after the other, and count as alive for so long.
queue_strangers() {
	keys_of "$1"
	redis eval '
		local queue, deadlines, waiters = KEYS[1], KEYS[2], KEYS[3]
		local count, since_us, alive_ms, push = ARGV[1], ARGV[2], ARGV[3], ARGV[4] == "left" and "LPUSH" or "RPUSH"
		local run, now = redis.call("INFO", "server"):match("run_id:(%w+)"), redis.call("TIME")
		local now_ms = now[1] * 1000 + math.floor(now[2] / 1000)
		for i = 1, count do
			local owner = string.format("%.0f:%d", since_us, push == "LPUSH" and count - i or i)
			redis.call(push, queue, owner)
			redis.call("ZADD", deadlines, string.format("%.0f", now_ms + 3600000), owner)
			redis.call("HSET", waiters, owner, string.format("%.0f %.0f %s 0 a note", now_ms + alive_ms, since_us + i, run))
		end
		if redis.call("HEXISTS", waiters, "seen") == 0 then
			redis.call("HSET", waiters, "seen", string.format("%.0f %.0f %s 0", now_ms, now_ms - 1, run))
		end
		for _, key in ipairs(KEYS) do
			redis.call("PEXPIRE", key, 3600000)
		end' 3 "$QUEUE_KEY" "$DEADLINES_KEY" "$WAITERS_KEY" "${@:2}" >/dev/null
}

# ---- woken ----

# How soon one that is woken has to be in. None that looks by itself is so soon, see has_just_looked.
wake_limit() {
	[ -z "${TESTS_UNDER:-}" ] || {
		echo 1.6
		return
	}
	echo 1.4
}

# is_woken_by NAME PARTY COMMAND [ARG...]: the head gets in promptly once the command is done.
is_woken_by() {
	wait_until 5 has_just_looked "$1" "$2"
	is_waiting "$2"
	"${@:3}"
	is_inside_woken "$2"
}

# is_inside_woken PARTY: it gets in since it was woken just now.
is_inside_woken() {
	soon_or_woken "$(wake_limit)" "$BATS_TEST_TMPDIR/said-$1" is_inside "$1"
}

# ---- Java ----

# java_does NAME PARTY FAST_MS SCRIPT [ARG...]: a script of the effect of one of Redisson's; FAST_MS is by how
# much the client's clock is fast.
java_does() {
	keys_of "$1"
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
		'"$4" 4 "$1" "$QUEUE_KEY" "$DEADLINES_KEY" "$CHANNEL" \
		"$JAVA_CLIENT:${2#J}" $(($(server_ms) + $3)) "${@:5}"
}

java_enters_if_it_may='
	if redis.call("exists", lock) == 0 and (not head or head == owner) then
		redis.call("lpop", queue)
		redis.call("zrem", deadlines, owner)
		for _, other in ipairs(redis.call("zrange", deadlines, 0, -1)) do
			redis.call("zincrby", deadlines, -tonumber(ARGV[3]), other)
		end
		redis.call("hset", lock, owner, 1)
		redis.call("pexpire", lock, 30000)
		return nil
	end
	if redis.call("hexists", lock, owner) == 1 then
		redis.call("hincrby", lock, owner, 1)
		redis.call("pexpire", lock, 30000)
		return nil
	end'

# java_locks PARTY NAME [FAST_MS [WAIT_MS]]: one try, which puts it into the queue. Prints nothing when the lock
# was acquired, else how long to sleep.
java_locks() {
	java_does "$2" "$1" "${3:-0}" "$java_enters_if_it_may"'
		if redis.call("zscore", deadlines, owner) then
			return math.max(redis.call("pttl", lock), 0)
		end
		local last, ttl = redis.call("lindex", queue, -1), nil
		local before = last and last ~= owner and redis.call("zscore", deadlines, last)
		if before then
			ttl = tonumber(before) - now
		else
			ttl = redis.call("pttl", lock)
		end
		if redis.call("zadd", deadlines, ttl + tonumber(ARGV[3]) + now, owner) == 1 then
			redis.call("rpush", queue, owner)
		end
		return ttl' "${4:-300000}"
}

# java_unlocks PARTY NAME [FAST_MS]: prints 1 when the lock is free now, 0 when it is held further, nothing
# when it is not the owner's.
java_unlocks() {
	java_does "$2" "$1" "${3:-0}" '
		local is_free = redis.call("exists", lock) == 0
		if not is_free then
			if redis.call("hexists", lock, owner) == 0 then
				return nil
			end
			if redis.call("hincrby", lock, owner, -1) > 0 then
				redis.call("pexpire", lock, 30000)
				return 0
			end
			redis.call("del", lock)
		end
		if head then
			redis.call("publish", channel .. ":" .. head, 0)
		end
		return 1'
}

# java_listens NAME PARTY: as long as the process PID lives, the thread listens to its channel.
java_listens() {
	in_background redis-cli -s "$SERVER_SOCKET" subscribe "$(channel "$1"):$(owner_in_queue "$1" "$2")" >/dev/null
	wait_until 5 is_listened_to "$1" "$2"
}

# keep_head NAME [AHEAD_MS]: a thread of Java's, J1, is next for the lock, which is free.
keep_head() {
	redis rpush "$(queue_key "$1")" "$JAVA_CLIENT:1" >/dev/null
	set_deadline "$1" J1 "${2:-60000}"
}

# java_has_lock NAME PARTY
java_has_lock() {
	redis_says "$JAVA_CLIENT:${2#J}" hkeys "$1"
}

# ---- messages ----

# record_messages: writes each message on a channel of plain or fair locks to the file "heard".
record_messages() {
	in_background sh -c 'exec redis-cli -s "$SERVER_SOCKET" --csv psubscribe "redisson_lock__channel:*" >heard'
	wait_until 5 file_has heard '"psubscribe"'
}

# show_messages: "CHANNEL MESSAGE" of all so far, once those before a last one have certainly come.
show_messages() {
	redis publish redisson_lock__channel:end end >/dev/null
	wait_until 5 file_has heard '"end"'
	sed -n 's/^"pmessage",[^,]*,"\(.*\)","\(.*\)"$/\1 \2/p' heard | grep -v ' end$'
}
