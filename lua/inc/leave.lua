-- How a waiter leaves the wake queue without the lock.

-- include: wake

-- Remove this waiter from the wake queue. If the lock is free, this waiter may have been woken for it: then wake the next waiter
-- instead. But if another waiter of ours has the next turn, that waiter was woken, so wake none.
local function leave_wake_queue(name, id)
	redis.pcall('ZREM', name.wake_queue, id)
	local waiter = waiter_in_turn(name)
	if waiter == id then redis.pcall('DEL', name.turn) end
	if is_available(name) and (not waiter or waiter == id or waiter == REDISSON) then wake_next(name) end
end

-- Reserve each name for undo_ms for the caller, which has just released it and continues to wait. Waiters that the release has
-- woken learn from their next attempt when the reservation ends.
local function reserve_all()
	for _, name in ipairs(names) do
		if undo_ms ~= '0' and is_available(name) and not is_regained_next(name) then
			redis.pcall('SET', name.turn, since_us .. ' ' .. hold_id, 'PX', undo_ms)
		end
	end
end
