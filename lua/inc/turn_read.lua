-- To leave a free lock to the waiter that has the next turn.
-- include: request
-- include: request_options
-- include: turn_waiter

-- The waiter that the caller leaves the lock to, and for how many permits that one waits; nil when there is none. A
-- caller that has waited for longer goes first. So does one that may not wait, if the turn is that of OTHERS: these might
-- not come, and the caller has no later try.
local function waiter_in_front(name)
	if name.is_absent then
		return nil
	end
	local waiter, since_us, permits = waiter_in_turn(name)
	if waiter == OTHERS then
		return may_wait and not has_turn_passed and waiter or nil, 1
	elseif waiter == hold_id or waiter and waits_since_us and waits_since_us < since_us then
		return nil
	end
	return waiter, permits
end

-- When that turn is over at the latest, from now.
local function turn_retry_after_ms(name)
	return math.max(redis.call('PTTL', name.turn), 0) + 1
end
