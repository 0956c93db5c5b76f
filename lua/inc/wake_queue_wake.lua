-- To wake the next waiter in the wake queue.
-- include: now
-- include: denied
-- include: send
-- include: wake_queue
-- include: wake_queue_listening

local OVERTAKEN_MS = 2000  -- a waiter that waits for longer is not overtaken any more by callers of ours, ...
local TURN_MAX_MS = 1000   -- ... unless it does not come for so long

-- One has left the queue: the waiter that comes to the front by that learns it here, since its own next try may be late.
-- A number other than 0 and 1 tells it how soon to try.
local function notify_front(name)
	local last = redis.pcall('ZRANGE', name.wake_queue, FRONT_POSITIONS, FRONT_POSITIONS)
	if last[1] then
		send(waiter_channel(name, last[1]), FRONT_MS)
	end
end

-- The next one that listens: its hold id, and since when it waits. nil when there is none, or no right to notify it. Those
-- that do not listen are removed: one of them that lives will try when it has subscribed again.
local function wake_listener(name)
	for _ = 1, DEAD_MAX do
		local id, since_us = next_waiter(name)
		if not id then
			return nil
		end
		local heard = is_listening(name, id) and send(waiter_channel(name, id), WAKE_ONE) or 0
		if is_error(heard) or is_error(redis.pcall('ZREM', name.wake_queue, id)) then
			return nil
		elseif heard > 0 then
			return id, since_us
		end
	end
	return nil
end

-- To be run by whatever leaves the lock free and does not acquire it. Whether there was one to wake.
local function wake_next(name)
	local id, since_us = wake_listener(name)
	if not id then
		return false
	end
	if now_us() - since_us > OVERTAKEN_MS * 1000 then
		redis.pcall('SET', name.turn, digits(since_us) .. ' ' .. id, 'PX', TURN_MAX_MS, 'NX')
	end
	notify_front(name)
	return true
end
