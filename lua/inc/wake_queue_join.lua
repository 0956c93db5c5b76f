-- To wait in the wake queue.
-- include: request
-- include: request_options
-- include: now
-- include: denied
-- include: rights
-- include: wake_queue
-- include: wake_queue_listening
-- include: wake_queue_leave
-- include: turn_read

-- How soon waiters behind the front try again. Up to FEW of them: every FEW_MS, since all of them may be stopped. More:
-- every MANY_MS, since one of them tries in the meantime. All try FRONT_MS after the TTL is over: the holder may be
-- dead, and no waiter at the front left to see the end of its lease.
local FEW, FEW_MS = 12, 3000
local MANY_MS = 10000
local QUEUE_MS = 60000 -- longer than each of them, and than the first one sleeps

-- Adds the caller, or keeps it there; false when it could not leave again. What needs memory comes first: a full server
-- lets a script go on that has written.
local function join_wake_queue(name, since_us)
	local steps = {
		{ 'ZADD', name.wake_queue, 'XX', 0, '' },
		{ 'ZREM', name.wake_queue, '' },
		{ 'ZRANGE', name.wake_queue, 0, 0 },
		{ 'ZADD', name.wake_queue, digits(since_us), hold_id },
		{ 'PEXPIRE', name.wake_queue, QUEUE_MS },
	}
	return not try_all(steps, { { 'ZREM', name.wake_queue, hold_id } })
end

-- Waiters in front of the caller that do not listen any more.
local function remove_dead(name)
	for _ = 1, DEAD_MAX do
		local first = next_waiter(name)
		if first == hold_id or is_listening(name, first) then
			return
		end
		redis.call('ZREM', name.wake_queue, first)
	end
end

-- Of a waiter in the queue: how soon it has to try again at the latest; nil when it is the first.
local function queued_retry_ms(name, ttl_ms)
	local ids = redis.call('ZRANGE', name.wake_queue, 0, FEW)
	if ids[1] == hold_id then
		return nil
	end
	for i = 2, math.min(#ids, FRONT_POSITIONS + 1) do
		if ids[i] == hold_id then
			return FRONT_MS
		end
	end
	if #ids <= FEW then
		return FEW_MS
	end
	return ttl_ms >= 0 and math.min(MANY_MS, ttl_ms + FRONT_MS) or MANY_MS
end

-- How the caller waits for this lock: when it has to try again at the latest, -1: when the TTL is over; and 1 when it has
-- to hear what others than ours publish, and to try when the TTL is over, for all that are in the queue.
local function wait_in_wake_queue(name, since_us, ttl_ms)
	if listens ~= '1' then
		return -1, next_waiter(name) and 0 or 1
	end
	if not join_wake_queue(name, since_us) then
		return -1, 1
	end
	remove_dead(name)
	local retry_ms = queued_retry_ms(name, ttl_ms)
	return retry_ms or -1, retry_ms and 0 or 1
end

-- The reply of an acquisition that has to wait for one of its names. It leaves the wake queues of its other names.
local function wait_reply(index, ttl_ms, holder, holder_note, held_ms)
	if not may_wait then
		return { 0, index, ttl_ms, holder, holder_note, -1, '', 1, held_ms, 0 }
	end
	for other_index, other in ipairs(names) do
		if other_index ~= index then
			leave_wake_queue(other, hold_id)
		end
	end
	local since_us = waits_since_us or now_us()
	local retry_after_ms, is_on_guard = wait_in_wake_queue(names[index], since_us, ttl_ms)
	return { 0, index, ttl_ms, holder, holder_note, retry_after_ms, digits(since_us), is_on_guard, held_ms, 0 }
end

-- The lock is free, and kept for a waiter, which may be dead. Only its hold id is known, which is of no use to the caller.
local function turn_reply(index)
	local reply = wait_reply(index, -2, '', '', -1)
	local retry_after_ms = turn_retry_after_ms(names[index])
	reply[6] = reply[6] < 0 and retry_after_ms or math.min(reply[6], retry_after_ms)
	return reply
end
