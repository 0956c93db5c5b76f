-- Whether the caller of an acquisition has to leave a free lock to a waiter.

-- include: turn

-- Whether the caller has waited longer than this waiter. If both came at the same time, the hold ids decide, as in the wake
-- queue, so that all servers have the same order.
local function came_before(since_us, id)
	return waits_since_us and (waits_since_us < since_us or waits_since_us == since_us and hold_id < id)
end

-- The waiter that the caller must leave the lock to, and how many permits that waiter needs; nil if there is none. A caller that
-- has waited longer than that waiter need not leave it the lock.
-- If REDISSON has the turn, two sorts of callers do not leave it the lock:
-- a caller whose last reply was that another waiter has the turn, and that has received a message since;
-- a caller that does not wait: it makes no second attempt, and Redisson's waiters might not come.
local function earlier_waiter(name)
	local waiter, since_us, permits = waiter_in_turn(name)
	if waiter == REDISSON then return may_wait and not has_turn_passed and waiter or nil, 1 end
	if not waiter or waiter == hold_id or came_before(since_us, waiter) then return nil end
	return waiter, permits
end
