-- Whether the caller of an acquisition has to leave a free lock to a waiter.

-- include: turn

-- Whether the caller has waited longer than this waiter. If both came at the same time, the hold ids decide, as in the wake
-- queue: all servers then have the same order.
local function came_before(since_us, id)
	return waits_since_us and (waits_since_us < since_us or waits_since_us == since_us and hold_id < id)
end

-- The waiter that the caller must leave the lock to, and how many permits that waiter needs; nil if there is none. A caller
-- that has waited longer comes first.
-- Two sorts of callers do not leave the lock to REDISSON. One sort has left it to another waiter, and has received a message
-- since. The other does not wait: Redisson's waiters might not come, and such a caller makes no second attempt.
local function earlier_waiter(name)
	local waiter, since_us, permits = waiter_in_turn(name)
	if waiter == REDISSON then return may_wait and not has_turn_passed and waiter or nil, 1 end
	if not waiter or waiter == hold_id or came_before(since_us, waiter) then return nil end
	return waiter, permits
end
