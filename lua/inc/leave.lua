-- To leave the wake queue without the lock.

-- include: wake

-- The waiter may have been woken just now, and then the next one has to be, but where another one has the turn: that one was.
local function leave_wake_queue(name, id)
	redis.pcall('ZREM', name.wake_queue, id)
	local waiter = waiter_in_turn(name)
	if waiter == id then redis.pcall('DEL', name.turn) end
	if is_available(name) and (not waiter or waiter == id or waiter == REDISSON) then wake_next(name) end
end

-- Reserves each name for the caller, which has just released it and waits on, for undo_ms. Those that the release has woken learn
-- from their attempts when the reservation ends.
local function reserve_all()
	for _, name in ipairs(names) do
		if undo_ms ~= '0' and is_available(name) and not is_regained_next(name) then
			redis.pcall('SET', name.turn, since_us .. ' ' .. hold_id, 'PX', undo_ms)
		end
	end
end
