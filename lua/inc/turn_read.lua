-- To leave a free lock to the waiter that has the next turn.
-- include: request
-- include: turn

-- The waiter that comes before the caller; nil when none does. A caller that does not wait would never have a turn of its
-- own, and Redisson's waiters may not come: it leaves the lock to ours only.
local function waiter_in_front(name)
	local waiter = not name.is_absent and redis.pcall('GET', name.turn)
	if type(waiter) ~= 'string' or waiter == hold_id then
		return nil
	elseif waiter == OTHERS and (has_turn_passed or not may_wait) then
		return nil
	end
	return waiter
end

-- When that turn is over at the latest, from now.
local function turn_retry_after_ms(name)
	return math.max(redis.call('PTTL', name.turn), 0) + 1
end
