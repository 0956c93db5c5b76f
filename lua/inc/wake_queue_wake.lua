-- To wake the next waiter in the wake queue.
-- include: now
-- include: denied
-- include: send
-- include: wake_queue

local DEAD_MAX = 1000      -- at once: a script must not keep the server from its other clients
local OVERTAKEN_MS = 2000  -- a waiter that waits for longer is not overtaken any more by callers of ours, ...
local TURN_MAX_MS = 1000   -- ... unless it does not come for so long

-- To be run by whatever leaves the lock free and does not acquire it. Waiters that do not listen any more are removed: one
-- of them that lives will try when it has subscribed again.
local function wake_next(name)
	for _ = 1, DEAD_MAX do
		local id, since_us = next_waiter(name)
		if not id then
			return
		end
		local heard = is_listening(name, id) and send(waiter_channel(name, id), WAKE_ONE) or 0
		if is_error(heard) or is_error(redis.pcall('ZREM', name.wake_queue, id)) then
			return
		elseif heard > 0 then
			if now_us() - since_us > OVERTAKEN_MS * 1000 then
				redis.pcall('SET', name.turn, id, 'PX', TURN_MAX_MS, 'NX')
			end
			return
		end
	end
end
