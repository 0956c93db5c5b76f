-- To wait in the wake queue.
-- include: request
-- include: now
-- include: denied
-- include: rights
-- include: wake_queue
-- include: wake_queue_leave
-- include: turn_read

local NEAR_POSITIONS = 3 -- so many waiters behind the first try again so soon, in case that one dies, ...
local NEAR_MS = 2000
local FAR_MS = 10000     -- ... and the others so soon
local QUEUE_MS = 60000   -- longer than each of them, and than the first one sleeps

-- Adds the caller, unless it could not leave again. What needs memory comes first: a full server lets a script go on that
-- has written.
local function enter_wake_queue(name, since_us)
	local steps = {
		{ 'ZADD', name.wake_queue, 'XX', 0, '' },
		{ 'ZREM', name.wake_queue, '' },
		{ 'ZRANGE', name.wake_queue, 0, 0 },
		{ 'ZADD', name.wake_queue, digits(since_us), hold_id },
		{ 'PEXPIRE', name.wake_queue, QUEUE_MS },
	}
	return not try_all(steps, { { 'ZREM', name.wake_queue, hold_id } })
end

-- Joins it, or stays in it. The position, from 0 on, any behind NEAR_POSITIONS being one of them; nil when the waiter
-- can't be in the queue.
local function join_wake_queue(name, since_us)
	if not enter_wake_queue(name, since_us) then
		return nil
	end
	local first = next_waiter(name)
	while first ~= hold_id and not is_listening(name, first) do
		redis.call('ZREM', name.wake_queue, first)
		first = next_waiter(name)
	end
	for i, id in ipairs(redis.call('ZRANGE', name.wake_queue, 0, NEAR_POSITIONS)) do
		if id == hold_id then
			return i - 1
		end
	end
	return NEAR_POSITIONS + 1
end

-- How the caller waits for this lock: when it has to try again at the latest, -1: when the TTL is over; and 1 when it has
-- to hear what others than ours publish, and to try when the TTL is over, for all that are in the queue.
local function wait_in_wake_queue(name, since_us)
	if listens ~= '1' then
		return -1, next_waiter(name) and 0 or 1
	end
	local position = join_wake_queue(name, since_us)
	if not position or position == 0 then
		return -1, 1
	end
	return position <= NEAR_POSITIONS and NEAR_MS or FAR_MS, 0
end

-- The reply of an acquisition that has to wait for one of its names. Others that are free are for others.
local function wait_reply(index, ttl_ms, holder, holder_note)
	if not may_wait then
		return { 0, index, ttl_ms, holder, holder_note, -1, '', 1 }
	end
	for other_index, other in ipairs(names) do
		if other_index ~= index then
			leave_wake_queue(other, hold_id)
		end
	end
	local since_us = waits_since_us or now_us()
	local retry_after_ms, is_on_guard = wait_in_wake_queue(names[index], since_us)
	return { 0, index, ttl_ms, holder, holder_note, retry_after_ms, digits(since_us), is_on_guard }
end

local function held_reply(index, holder, holder_note)
	return wait_reply(index, redis.call('PTTL', names[index].lock), holder, holder_note)
end

-- The lock is free, and it is the turn of that waiter.
local function turn_reply(index, waiter)
	local reply = wait_reply(index, -2, waiter, '')
	if reply[8] == 1 then
		reply[6] = turn_retry_after_ms(names[index])
	end
	return reply
end

-- The caller has the lock.
local function acquired_from_wake_queue(name)
	if waits_since_us then
		redis.pcall('ZREM', name.wake_queue, hold_id)
	end
	if not name.is_absent then
		redis.pcall('DEL', name.turn)
	end
end
