-- To leave the wake queue without the lock.
-- include: wake_queue_wake

-- The waiter may have been woken just now, and then the next one has to be.
local function leave_wake_queue(name, id)
	redis.pcall('ZREM', name.wake_queue, id)
	if redis.pcall('GET', name.turn) == id then
		redis.pcall('DEL', name.turn)
	end
	if redis.pcall('EXISTS', name.lock) == 0 then
		wake_next(name)
	end
end
