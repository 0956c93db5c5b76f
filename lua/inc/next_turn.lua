-- The waiter that the caller of an acquisition leaves the lock to.

-- include: turn

-- Whether the caller has waited for longer than that waiter. As the queue is sorted: the hold ids decide where both came at
-- once, so that all servers have one order.
local function came_before(since_us, id)
	return waits_since_us and (waits_since_us < since_us or waits_since_us == since_us and hold_id < id)
end

-- The waiter that the caller leaves the lock to, and for how many permits that one waits; nil when there is none. A
-- caller that has waited for longer goes first. So does one that may not wait, if the turn is that of REDISSON: these might
-- not come, and the caller has no later try.
local function earlier_waiter(name)
	local waiter, since_us, permits = waiter_in_turn(name)
	if waiter == REDISSON then return may_wait and not has_turn_passed and waiter or nil, 1 end
	if not waiter or waiter == hold_id or came_before(since_us, waiter) then return nil end
	return waiter, permits
end
