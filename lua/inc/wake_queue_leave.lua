-- To leave the wake queue without the lock.
-- include: wake_queue_wake
-- include: turn_waiter
-- include: available

-- The waiter may have been woken just now, and then the next one has to be.
local function leave_wake_queue(name, id)
	redis.pcall('ZREM', name.wake_queue, id)
	if waiter_in_turn(name) == id then
		redis.pcall('DEL', name.turn)
	end
	if is_available(name) then
		wake_next(name)
	end
end
