-- Messages to waiters, the wake queue of all but fair locks, and whose turn it is.

-- wire: LockPubSub's messages. By the first Redisson wakes one waiter of each client, by the second all of them.
local WAKE_ONE, WAKE_ALL = '0', '1'

-- wire: in a cluster new Redissons listen by SSUBSCRIBE alone, and old ones by SUBSCRIBE.
-- By pcall: the lock is free by now, and must not stay held since a user has no right to the channel.
-- Returns how many clients hear it, or the error.
local function send(channel, message)
	local heard_in_slot = is_in_cluster and redis.pcall('SPUBLISH', channel, message) or 0
	local heard = redis.pcall('PUBLISH', channel, message)
	return (is_error(heard) or is_error(heard_in_slot)) and heard or heard + heard_in_slot
end

-- The first error of a PUBLISH, by which the caller learns which right is missing.
local publish_error

-- Returns how many clients hear it.
local function publish(channel, message)
	local heard = send(channel, message)
	if not is_error(heard) then return heard end
	publish_error = publish_error or command_error('PUBLISH', heard)
	return 0
end

-- Which waiter has the next turn of a free lock: a string beside it, "SINCE ID", since when it waits and its hold id, or
-- OTHERS. While it is there callers of ours that would be faster leave the lock to that waiter. Java does not know it.
-- A waiter for several permits of a semaphore adds how many, "SINCE ID PERMITS": so many are left to it.
local OTHERS = '-' -- Redisson's waiters, and those of older versions

-- While readers hold a lock: "READERS UNTIL", those that waited before that time come in beside the one that had the turn.
local READERS = 'readers'

-- Since when a request waits by which a server regains a hold: it is older than all waiters. lib/regain.c sends it.
local REGAIN_US = 1

-- Its hold id, since when it waits, and for how many permits; or OTHERS; or nil.
local function waiter_in_turn(name)
	local turn = redis.pcall('GET', name.turn)
	if type(turn) ~= 'string' or turn == OTHERS then return turn == OTHERS and turn or nil end
	local since_us, id, permits = string.match(turn, '^(%d+) (%S+) ?(%d*)$')
	return id, tonumber(since_us), tonumber(permits) or 1
end

-- Whether the caller has waited for longer than that waiter. As the queue is sorted: the hold ids decide where both came at
-- once, so that all servers have one order.
local function came_before(since_us, id)
	return waits_since_us and (waits_since_us < since_us or waits_since_us == since_us and hold_id < id)
end

-- The waiter that the caller leaves the lock to, and for how many permits that one waits; nil when there is none. A
-- caller that has waited for longer goes first. So does one that may not wait, if the turn is that of OTHERS: these might
-- not come, and the caller has no later try.
local function waiter_in_front(name)
	local waiter, since_us, permits = waiter_in_turn(name)
	if waiter == OTHERS then return may_wait and not has_turn_passed and waiter or nil, 1 end
	if not waiter or waiter == hold_id or came_before(since_us, waiter) then return nil end
	return waiter, permits
end

-- Whether the next turn is that of a hold which a quorum of servers has, and this one has lost.
local function is_regained_next(name)
	local _, since_us = waiter_in_turn(name)
	return since_us == REGAIN_US
end

-- When that turn is over at the latest, from now.
local function turn_retry_after_ms(name) return math.max(redis.call('PTTL', name.turn), 0) + 1 end

-- The queue of our waiters for any lock but a fair one: a sorted set of their hold ids, by the time since when each waits. A
-- waiter for several names is in the queue of each.
-- It says which of them is woken next, and never which acquires the lock. A waiter is in it while it sleeps. The script
-- that wakes it removes it, so that one that is dead or stopped costs one turn. One that then tries in vain joins again,
-- at its old position. Commands are run by pcall: without a right or the memory for the queue waiters are woken by the
-- channel of the lock, and by their own clock.
local FRONT_POSITIONS = 3 -- so many waiters behind the first try again so soon, in case that one dies or is stopped
local FRONT_MS = 2000
local DEAD_MAX = 1000     -- are removed at once: a script must not keep the server from its other clients

-- Each waiter in it listens to a channel of its own. wire: and each in the queue of a fair lock, whose id is its owner.
local function waiter_channel(name, id) return name.channel .. ':' .. id end

-- How many clients listen to a channel; nil when the user may not ask. What PUBLISH returns would count those that listen to a
-- pattern, too, such as a monitor of all channels.
local function count_listeners(channel)
	local reply = redis.pcall('PUBSUB', 'NUMSUB', channel)
	if is_error(reply) then return nil end
	-- wire: in a cluster new Redissons listen in the slot alone.
	local in_slot = is_in_cluster and redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
	return reply[2] + (in_slot and not is_error(in_slot) and in_slot[2] or 0)
end

-- The same of a waiter's own.
local function count_hearers(name, id) return count_listeners(waiter_channel(name, id)) end

-- In the place of an id: the channel to which each of ours listens that also listens to the channel of the lock.
local OURS = 'rlock'

-- The first waiter in it, of those that came after a time where one is given, and since when it waits; nil when there is
-- none.
local function next_waiter(name, after_us)
	local least = after_us and '(' .. digits(after_us) or '-inf'
	local first = redis.pcall('ZRANGE', name.wake_queue, least, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
	return first[1], tonumber(first[2])
end

local OVERTAKEN_MS = 2000  -- a waiter that waits for longer is not overtaken any more by callers of ours, ...
local TURN_MAX_MS = 1000   -- ... unless it does not come for so long

-- One has left the queue: the waiter that comes to the front by that learns it here, since its own next try may be late.
-- A number other than 0 and 1 tells it how soon to try.
local function notify_front(name)
	local last = redis.pcall('ZRANGE', name.wake_queue, FRONT_POSITIONS, FRONT_POSITIONS)
	if last[1] then send(waiter_channel(name, last[1]), FRONT_MS) end
end

-- The next one that listens: its hold id, and since when it waits. nil when there is none, or no right to notify it. Those
-- that do not listen are removed: one of them that lives will try when it has subscribed again.
local function wake_listener(name, after_us)
	for _ = 1, DEAD_MAX do
		local id, since_us = next_waiter(name, after_us)
		if not id then return nil end
		local heard = count_hearers(name, id) ~= 0 and send(waiter_channel(name, id), WAKE_ONE) or 0
		if is_error(heard) or is_error(redis.pcall('ZREM', name.wake_queue, id)) then return nil end
		if heard > 0 then return id, since_us end
	end
	return nil
end

-- Gives the next turn to a waiter that was woken, where it has waited for long, and for longer than the one that has it. Its id
-- is the owner of one in the queue of a fair lock.
local function give_turn(name, since_us, id)
	local waiter, other_since_us = waiter_in_turn(name)
	if now_us() - since_us > OVERTAKEN_MS * 1000 and waiter ~= OTHERS
		and (not waiter or waiter == id or since_us < other_since_us) then
		redis.pcall('SET', name.turn, digits(since_us) .. ' ' .. id, 'PX', TURN_MAX_MS)
	end
end

-- To be run by whatever leaves the lock free and does not acquire it. Whether there was one to wake, of those that came
-- after a time where one is given.
local function wake_next(name, after_us)
	local id, since_us = wake_listener(name, after_us)
	if not id then return false end
	give_turn(name, since_us, id)
	notify_front(name)
	return true
end

local OTHERS_TURN_MS = 50 -- what Redisson needs from a message to its next try on a busy machine
local OTHERS_TURN_IN = 4  -- one of so many releases gives a turn: after the others all compete, as after those of Redisson

-- How many others than ours listen to the channel of the lock; nil when the user may not ask.
local function count_others(name)
	local all = count_listeners(name.channel)
	return all and math.max(all - (count_hearers(name, OURS) or 0), 0)
end

-- Gives Redisson's waiters a turn after some releases: they are slower than ours, and would starve. After more releases ours
-- would, of which a release of Redisson's wakes none sooner. heard: how many clients heard of this release.
local function give_others_turn(name, heard)
	if heard > 0 and now_us() % OTHERS_TURN_IN == 0 and (count_others(name) or 0) > 0 then
		redis.pcall('SET', name.turn, OTHERS, 'PX', OTHERS_TURN_MS)
	end
end

-- Wakes those that listen to the channel of the lock: Redisson's, and the first of ours.
local function wake_others(name, message)
	give_others_turn(name, publish(name.channel, message))
end

-- The same, and wakes one of ours.
local function wake_waiters(name, message)
	wake_others(name, message)
	wake_next(name)
end

local function is_available(name)
	if name.permits then return (tonumber(redis.pcall('GET', name.lock)) or 0) > 0 end
	return redis.pcall('EXISTS', name.lock) == 0
end

-- The waiter may have been woken just now, and then the next one has to be, but where another one has the turn: that one was.
local function leave_wake_queue(name, id)
	redis.pcall('ZREM', name.wake_queue, id)
	local waiter = waiter_in_turn(name)
	if waiter == id then redis.pcall('DEL', name.turn) end
	if is_available(name) and (not waiter or waiter == id or waiter == OTHERS) then wake_next(name) end
end

-- Gives the turn of each name to the caller, that has just released them, for so long, if at all. Those that the release has
-- woken learn from their tries when it is over.
local function keep_all(since_us, kept_ms)
	for _, name in ipairs(names) do
		if kept_ms ~= '0' and is_available(name) and not is_regained_next(name) then
			redis.pcall('SET', name.turn, since_us .. ' ' .. hold_id, 'PX', kept_ms)
		end
	end
end

-- How soon waiters behind the front try again. Up to FEW of them: every FEW_MS, since all of them may be stopped. More:
-- every MANY_MS, since one of them tries in the meantime. All try FRONT_MS after the TTL is over: the holder may be
-- dead, and no waiter at the front left to see the end of its lease.
local FEW, FEW_MS = 12, 3000
local MANY_MS = 10000
local WAKE_QUEUE_MS = 60000 -- longer than each of them, and than the first one sleeps

-- Adds the caller, or keeps it there; false when it could not leave again. What needs memory comes first: a full server
-- lets a script go on that has written.
local function join_wake_queue(name, since_us)
	local queue = name.wake_queue
	for _, step in ipairs({ { 'ZADD', queue, 'XX', 0, '' }, { 'ZREM', queue, '' }, { 'ZRANGE', queue, 0, 0 },
		{ 'ZADD', queue, digits(since_us), hold_id }, { 'PEXPIRE', queue, WAKE_QUEUE_MS } }) do
		if is_error(redis.pcall(unpack(step))) then
			redis.pcall('ZREM', queue, hold_id)
			return false
		end
	end
	return true
end

-- Waiters in front of the caller that do not listen any more.
local function remove_dead(name)
	for _ = 1, DEAD_MAX do
		local first = next_waiter(name)
		if first == hold_id or count_hearers(name, first) ~= 0 then return end
		redis.call('ZREM', name.wake_queue, first)
	end
end

-- Of a waiter in the queue: how soon it has to try again at the latest; nil when it is the first.
local function queued_retry_ms(name, ttl_ms)
	local ids = redis.call('ZRANGE', name.wake_queue, 0, FEW)
	if ids[1] == hold_id then return nil end
	for i = 2, math.min(#ids, FRONT_POSITIONS + 1) do
		if ids[i] == hold_id then return FRONT_MS end
	end
	if #ids <= FEW then return FEW_MS end
	return ttl_ms >= 0 and math.min(MANY_MS, ttl_ms + FRONT_MS) or MANY_MS
end

-- How the caller waits for this lock: when it has to try again at the latest, -1: when the TTL is over; and 1 when it has
-- to hear what others than ours publish, and to try when the TTL is over, for all that are in the queue.
local function wait_in_wake_queue(name, since_us, ttl_ms)
	if listens ~= '1' then return -1, next_waiter(name) and 0 or 1 end
	if not join_wake_queue(name, since_us) then return -1, 1 end
	remove_dead(name)
	local retry_ms = queued_retry_ms(name, ttl_ms)
	return retry_ms or -1, retry_ms and 0 or 1
end

-- The sooner of two times to try again at, -1 is none.
local function sooner_ms(retry_ms, other_ms)
	return (retry_ms < 0 or other_ms < 0) and math.max(retry_ms, other_ms) or math.min(retry_ms, other_ms)
end

local KEPT_MS = 1000 -- how much longer a turn lasts whose waiter came, and has to wait for another name

-- What becomes of one of several names while the caller waits for them. Where it is free, and the caller has its turn, it is
-- kept for the caller, but only once, when it was woken: then others have it, until a release gives the caller another turn. In
-- any other case the next waiter is woken; a later one, since two that each wait for a name
-- of their own would wake each other. Returns when the turn is over, -1: it is not the caller's.
local function keep_or_pass_on(name, since_us)
	if not is_available(name) then return -1 end
	local waiter = waiter_in_turn(name)
	if waiter == hold_id then
		local left_ms = redis.call('PTTL', name.turn)
		-- One that was woken is not in the queue.
		if redis.pcall('ZRANGE', name.wake_queue, digits(since_us), digits(since_us), 'BYSCORE')[1] ~= hold_id then
			left_ms = left_ms + KEPT_MS
			redis.pcall('PEXPIRE', name.turn, left_ms)
		end
		return left_ms + 1
	elseif not waiter or waiter == OTHERS then
		wake_next(name, since_us)
	end
	return -1
end

-- The next turn of every name is the caller's, whose hold a quorum of servers has: a client that holds the lock here has no
-- quorum, and releases it in a moment. The caller tries again by its own clock.
local function keep_for_regain()
	for _, name in ipairs(names) do
		redis.pcall('SET', name.turn, digits(REGAIN_US) .. ' ' .. hold_id, 'PX', TURN_MAX_MS)
	end
end

-- The reply of an acquisition that has to wait for one of its names. It waits for all of them.
local function wait_reply(index, ttl_ms, holder, holder_note, held_ms)
	if is_regain then keep_for_regain() end
	if is_regain or not may_wait then
		return { 0, index, ttl_ms, holder, holder_note, -1, '', 1, held_ms, 0 }
	end
	local since_us, retry_after_ms, is_on_guard = waits_since_us or now_us(), -1, 0
	for i, name in ipairs(names) do
		local kept_ms = #names > 1 and keep_or_pass_on(name, since_us) or -1
		local name_ttl_ms = i == index and ttl_ms or redis.call('PTTL', name.lock)
		local retry_ms, guards = wait_in_wake_queue(name, since_us, name_ttl_ms)
		if guards == 1 then
			is_on_guard = 1
			retry_ms = i ~= index and name_ttl_ms >= 0 and name_ttl_ms + 1 or retry_ms
		end
		retry_after_ms = sooner_ms(retry_after_ms, sooner_ms(retry_ms, kept_ms))
	end
	return { 0, index, ttl_ms, holder, holder_note, retry_after_ms, digits(since_us), is_on_guard, held_ms, 0 }
end

-- The lock is free, and kept for a waiter, which may be dead. Only its hold id is known, which is of no use to the caller.
local function turn_reply(index)
	local reply = wait_reply(index, -2, '', '', -1)
	reply[6] = sooner_ms(reply[6], turn_retry_after_ms(names[index]))
	return reply
end

local function held_reply(index)
	return wait_reply(index, redis.call('PTTL', names[index].lock), holder_of(names[index]))
end

-- Waiters that came before the caller, which has the lock now without having been woken: those that were woken did not come,
-- and others are stopped, too. All leave the queue at once, so that they hold up those behind them once. One that is not
-- stopped tries, and joins it again.
local function wake_in_front(name)
	local ids = redis.pcall('ZRANGE', name.wake_queue, '-inf', '(' .. digits(waits_since_us), 'BYSCORE', 'LIMIT', 0, DEAD_MAX)
	for _, id in ipairs(ids) do
		redis.pcall('ZREM', name.wake_queue, id)
		send(waiter_channel(name, id), WAKE_ONE)
	end
end

-- The caller has the lock, and waits no longer.
local function leave_with_lock(name)
	if waits_since_us and redis.pcall('ZREM', name.wake_queue, hold_id) == 1 then wake_in_front(name) end
end

local function acquired_from_wake_queue(name)
	leave_with_lock(name)
	redis.pcall('DEL', name.turn)
end
