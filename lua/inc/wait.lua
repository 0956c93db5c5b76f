-- How a caller waits for any lock but a fair one.

-- include: clock
-- include: names
-- include: wake
-- include: next_turn
-- include: options

-- In how many ms the next turn has expired, unless its waiter comes before that.
local function turn_retry_after_ms(name) return math.max(redis.call('PTTL', name.turn), 0) + 1 end

-- How often waiters poll that are farther back than HEAD_POSITIONS. In a queue of up to SHORT_QUEUE waiters: every
-- SHORT_QUEUE_RETRY_MS, because all waiters before them may be stopped. In a longer queue: every LONG_QUEUE_RETRY_MS, because
-- some waiter polls in between; but not later than HEAD_RETRY_MS after the lock's TTL has passed, because the holder and the
-- waiters at the head may be dead.
local SHORT_QUEUE, SHORT_QUEUE_RETRY_MS = 12, 3000
local LONG_QUEUE_RETRY_MS = 10000
-- The TTL of the queue: longer than any waiter sleeps, so a queue does not expire while its waiters live.
local WAKE_QUEUE_MS = 60000

-- Add the caller to the queue, or keep it there. False: a command failed, and the caller is not in the queue. The first command
-- changes nothing, but needs memory, so a server whose memory is full refuses it. After another write such a server would allow
-- ZADD, and the queue would grow. But a caller that is in the queue stays there.
local function join_wake_queue(name, since_us)
	local queue = name.wake_queue
	local first = redis.pcall('ZADD', queue, 'XX', 0, '')
	if is_memory_error(first) then
		local is_queued = redis.pcall('ZRANGE', queue, digits(since_us), digits(since_us), 'BYSCORE')[1] == hold_id
		if is_queued then redis.pcall('PEXPIRE', queue, WAKE_QUEUE_MS) end
		return is_queued
	end
	for _, step in ipairs({ { 'ZREM', queue, '' }, { 'ZRANGE', queue, 0, 0 },
		{ 'ZADD', queue, digits(since_us), hold_id }, { 'PEXPIRE', queue, WAKE_QUEUE_MS } }) do
		if is_error(first) or is_error(redis.pcall(unpack(step))) then
			redis.pcall('ZREM', queue, hold_id)
			return false
		end
	end
	return true
end

-- Remove waiters before the caller that are not subscribed any more.
local function remove_dead(name)
	for _ = 1, DEAD_MAX do
		local first = next_waiter(name)
		if first == hold_id or count_waiter_subscribers(name, first) ~= 0 then return end
		redis.call('ZREM', name.wake_queue, first)
	end
end

-- In how many ms the caller, which is in the queue, has to try again at the latest; nil: the caller is the first waiter.
local function queued_retry_ms(name, ttl_ms)
	local ids = redis.call('ZRANGE', name.wake_queue, 0, SHORT_QUEUE)
	if ids[1] == hold_id then return nil end
	for i = 2, math.min(#ids, HEAD_POSITIONS + 1) do
		if ids[i] == hold_id then return HEAD_RETRY_MS end
	end
	if #ids <= SHORT_QUEUE then return SHORT_QUEUE_RETRY_MS end
	return ttl_ms >= 0 and math.min(LONG_QUEUE_RETRY_MS, ttl_ms + HEAD_RETRY_MS) or LONG_QUEUE_RETRY_MS
end

-- Let the caller wait for this lock. Return two numbers. The first is in how many ms the caller must try again at the latest; -1:
-- when the TTL of the lock has passed. The second is 1 if the caller must watch the lock on behalf of the queue, else 0. A caller
-- that watches the lock subscribes to its channel, and tries again when the TTL has passed.
local function wait_in_wake_queue(name, since_us, ttl_ms)
	if caller_subscribed ~= '1' then return -1, next_waiter(name) and 0 or 1 end
	if not join_wake_queue(name, since_us) then return -1, 1 end
	remove_dead(name)
	local retry_ms = queued_retry_ms(name, ttl_ms)
	return retry_ms or -1, retry_ms and 0 or 1
end

-- The shorter of two durations in ms; a negative one means none.
local function sooner_ms(retry_ms, other_ms)
	return (retry_ms < 0 or other_ms < 0) and math.max(retry_ms, other_ms) or math.min(retry_ms, other_ms)
end

-- If the waiter that has the turn of one name asks for the lock, but must wait for another of its names, its turn lasts this
-- much longer.
local TURN_EXTENSION_MS = 1000

-- Call this for a name that may be free while the caller waits for another of its names. Return how many ms are left of the
-- caller's turn; -1: the caller does not have the turn.
-- If the caller has the next turn, extend the turn, but only once after the caller was woken. After that, others may have the
-- name until a release gives the caller another turn. If no waiter of ours has the turn, wake one, but only one that came later
-- than the caller: otherwise two waiters that each wait for another name would wake each other for ever.
local function extend_turn_or_wake_next(name, since_us)
	if not is_available(name) then return -1 end
	local waiter = waiter_in_turn(name)
	if waiter == hold_id then
		local left_ms = redis.call('PTTL', name.turn)
		-- If the caller is not in the queue, it was woken.
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

-- Give the caller the next turn of every name. A quorum of servers has its hold, so another holder of the lock on this server has
-- no quorum, and releases the lock soon. The caller polls until then.
local function reserve_for_regain()
	for _, name in ipairs(names) do
		redis.pcall('SET', name.turn, digits(REGAIN_US) .. ' ' .. hold_id, 'PX', TURN_MAX_MS)
	end
end

-- The reply to a caller that waits for one of its names. The caller joins the wake queue of each name.
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

-- The reply if the lock is free, but reserved for another waiter, which may be dead. The reply does not name that waiter:
-- only its hold id is known, which would not help a user.
local function turn_reply(index)
	local reply = wait_reply(index, -2, '', '', -1)
	reply[6] = sooner_ms(reply[6], turn_retry_after_ms(names[index]))
	return reply
end

-- Wake and remove the waiters that came before the caller. Call this if the caller has acquired the lock without having been
-- woken: the waiters that were woken then did not come, and others may be stopped as well. Removed waiters that live join the
-- queue again. Stopped ones delay the others only once.
local function wake_earlier(name)
	local ids = redis.pcall('ZRANGE', name.wake_queue, '-inf', '(' .. digits(waits_since_us), 'BYSCORE', 'LIMIT', 0, DEAD_MAX)
	for _, id in ipairs(ids) do
		redis.pcall('ZREM', name.wake_queue, id)
		send(waiter_channel(name, id), WAKE_ONE)
	end
end

-- Leave the wake queue after the caller has acquired the lock.
local function leave_with_lock(name)
	if waits_since_us and redis.pcall('ZREM', name.wake_queue, hold_id) == 1 then wake_earlier(name) end
end

local function acquired_from_wake_queue(name)
	leave_with_lock(name)
	redis.pcall('DEL', name.turn)
end
