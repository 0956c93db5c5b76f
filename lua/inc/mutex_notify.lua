-- To notify the waiters of a plain or fair lock.
-- include: publish
-- include: queue_leave

-- The lock is given back already, and stays so whatever the user has no right to in the queue.
local function notify_head(name)
	local err = leave_error(name)
	if not err then
		prune(name)
		wake_head(name)
	end
	publish_error = publish_error or err
end

-- wire: Redisson's waiters of a plain lock listen to the channel itself, the first in a fair lock's queue
-- to one of its own. Both kinds may wait for one lock.
local function notify_waiters(name)
	publish(name.channel, WAKE_ONE)
	if redis.pcall('EXISTS', name.queue) == 1 then
		notify_head(name)
	end
end
