-- To wait for any lock but a fair one.

-- include: clock
-- include: names
-- include: wake
-- include: next_turn
-- include: options

-- When that turn is over at the latest, from now.
local function turn_retry_after_ms(name) return math.max(redis.call('PTTL', name.turn), 0) + 1 end

-- How soon waiters behind the front try again. Up to SHORT_QUEUE of them: every SHORT_QUEUE_RETRY_MS, since all of them may be stopped. More:
-- every LONG_QUEUE_RETRY_MS, since one of them tries in the meantime. All try HEAD_RETRY_MS after the TTL is over: the holder may be
-- dead, and no waiter at the front left to see the end of its lease.
local SHORT_QUEUE, SHORT_QUEUE_RETRY_MS = 12, 3000
local LONG_QUEUE_RETRY_MS = 10000
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
		if first == hold_id or count_waiter_subscribers(name, first) ~= 0 then return end
		redis.call('ZREM', name.wake_queue, first)
	end
end

-- Of a waiter in the queue: how soon it has to try again at the latest; nil when it is the first.
local function queued_retry_ms(name, ttl_ms)
	local ids = redis.call('ZRANGE', name.wake_queue, 0, SHORT_QUEUE)
	if ids[1] == hold_id then return nil end
	for i = 2, math.min(#ids, HEAD_POSITIONS + 1) do
		if ids[i] == hold_id then return HEAD_RETRY_MS end
	end
	if #ids <= SHORT_QUEUE then return SHORT_QUEUE_RETRY_MS end
	return ttl_ms >= 0 and math.min(LONG_QUEUE_RETRY_MS, ttl_ms + HEAD_RETRY_MS) or LONG_QUEUE_RETRY_MS
end

-- How the caller waits for this lock: when it has to try again at the latest, -1: when the TTL is over; and 1 when it has
-- to hear what others than ours publish, and to try when the TTL is over, for all that are in the queue.
local function wait_in_wake_queue(name, since_us, ttl_ms)
	if caller_subscribed ~= '1' then return -1, next_waiter(name) and 0 or 1 end
	if not join_wake_queue(name, since_us) then return -1, 1 end
	remove_dead(name)
	local retry_ms = queued_retry_ms(name, ttl_ms)
	return retry_ms or -1, retry_ms and 0 or 1
end

-- The sooner of two times to try again at, -1 is none.
local function sooner_ms(retry_ms, other_ms)
	return (retry_ms < 0 or other_ms < 0) and math.max(retry_ms, other_ms) or math.min(retry_ms, other_ms)
end

local TURN_EXTENSION_MS = 1000 -- how much longer a turn lasts whose waiter came, and has to wait for another name

-- What becomes of one of several names while the caller waits for them. Where it is free, and the caller has its turn, it is
-- kept for the caller, but only once, when it was woken: then others have it, until a release gives the caller another turn. In
-- any other case the next waiter is woken; a later one, since two that each wait for a name
-- of their own would wake each other. Returns when the turn is over, -1: it is not the caller's.
local function extend_turn_or_wake_next(name, since_us)
	if not is_available(name) then return -1 end
	local waiter = waiter_in_turn(name)
	if waiter == hold_id then
		local left_ms = redis.call('PTTL', name.turn)
		-- One that was woken is not in the queue.
		if redis.pcall('ZRANGE', name.wake_queue, digits(since_us), digits(since_us), 'BYSCORE')[1] ~= hold_id then
			left_ms = left_ms + TURN_EXTENSION_MS
			redis.pcall('PEXPIRE', name.turn, left_ms)
		end
		return left_ms + 1
	elseif not waiter or waiter == REDISSON then
		wake_next(name, since_us)
	end
	return -1
end

-- The next turn of every name is the caller's, whose hold a quorum of servers has: a client that holds the lock here has no
-- quorum, and releases it in a moment. The caller tries again by its own clock.
local function reserve_for_regain()
	for _, name in ipairs(names) do
		redis.pcall('SET', name.turn, digits(REGAIN_US) .. ' ' .. hold_id, 'PX', TURN_MAX_MS)
	end
end

-- The reply of an acquisition that has to wait for one of its names. It waits for all of them.
local function wait_reply(index, ttl_ms, holder, holder_note, held_ms)
	if is_regain then reserve_for_regain() end
	if is_regain or not may_wait then
		return { 0, index, ttl_ms, holder, holder_note, -1, '', 1, held_ms, 0 }
	end
	local since_us, retry_after_ms, watches_lock = waits_since_us or now_us(), -1, 0
	for i, name in ipairs(names) do
		local kept_ms = #names > 1 and extend_turn_or_wake_next(name, since_us) or -1
		local name_ttl_ms = i == index and ttl_ms or redis.call('PTTL', name.lock)
		local retry_ms, watches = wait_in_wake_queue(name, since_us, name_ttl_ms)
		if watches == 1 then
			watches_lock = 1
			retry_ms = i ~= index and name_ttl_ms >= 0 and name_ttl_ms + 1 or retry_ms
		end
		retry_after_ms = sooner_ms(retry_after_ms, sooner_ms(retry_ms, kept_ms))
	end
	return { 0, index, ttl_ms, holder, holder_note, retry_after_ms, digits(since_us), watches_lock, held_ms, 0 }
end

-- The lock is free, and kept for a waiter, which may be dead. Only its hold id is known, which is of no use to the caller.
local function turn_reply(index)
	local reply = wait_reply(index, -2, '', '', -1)
	reply[6] = sooner_ms(reply[6], turn_retry_after_ms(names[index]))
	return reply
end

-- Waiters that came before the caller, which has the lock now without having been woken: those that were woken did not come,
-- and others are stopped, too. All leave the queue at once, so that they hold up those behind them once. One that is not
-- stopped tries, and joins it again.
local function wake_earlier(name)
	local ids = redis.pcall('ZRANGE', name.wake_queue, '-inf', '(' .. digits(waits_since_us), 'BYSCORE', 'LIMIT', 0, DEAD_MAX)
	for _, id in ipairs(ids) do
		redis.pcall('ZREM', name.wake_queue, id)
		send(waiter_channel(name, id), WAKE_ONE)
	end
end

-- The caller has the lock, and waits no longer.
local function leave_with_lock(name)
	if waits_since_us and redis.pcall('ZREM', name.wake_queue, hold_id) == 1 then wake_earlier(name) end
end

local function acquired_from_wake_queue(name)
	leave_with_lock(name)
	redis.pcall('DEL', name.turn)
end
