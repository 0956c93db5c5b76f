-- To notify the waiters of a plain or fair lock.
-- include: queue_leave
-- include: wake_all

-- The lock is released by now, and stays so whatever right to the queue the user lacks.
local function notify_head(name)
	local err = leave_error(name)
	if not err then
		prune(name)
		wake_head(name)
	end
	publish_error = publish_error or err
end

-- wire: Redisson's waiters for a plain lock listen to the channel itself, the head of a fair lock's queue to a
-- channel of its own. Both kinds may wait for one lock.
local function notify_waiters(name)
	wake_waiters(name, WAKE_ONE)
	if redis.pcall('EXISTS', name.queue) == 1 then
		notify_head(name)
	end
end
