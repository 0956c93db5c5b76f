-- To notify the waiters for a plain or fair lock.

-- include: wake
-- include: queue
-- include: queue_rights

-- wire: Redisson's waiters for a plain lock listen to the channel itself, the head of a fair lock's queue to a
-- channel of its own. Both kinds may wait for one lock.
local function notify_waiters(name)
	wake_waiters(name, WAKE_ONE)
	local there = redis.pcall('EXISTS', name.queue)
	if there == 0 or is_elsewhere(there) then return end
	-- The lock is released by now, and stays so whatever right to the queue the user lacks.
	local err = leave_error(name)
	publish_error = publish_error or err
	if err then return end
	prune(name)
	wake_head(name)
	-- Callers for the plain lock would be faster each time. Where dead waiters are left, the head is one.
	local head = not name.has_dead and head_of(name)
	local heartbeat = head and heartbeat_of(name, head)
	if heartbeat then give_turn(name, heartbeat.since_us, head) end
end
