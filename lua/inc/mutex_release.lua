-- To release one hold of a plain or fair lock.
-- include: mutex_notify
-- include: mutex_settle

-- Whether no hold is left, and no waiter is in a queue for the lock: then only its channel is notified.
local function is_free_without_queue(name)
	return redis.pcall('EXISTS', name.lock, name.holds, name.queue, name.wake_queue) == 0
end

local function release_one(name, owner, count)
	if count > 1 then
		redis.call('HINCRBY', name.lock, owner, -1)
	else
		redis.call('HDEL', name.lock, owner)
	end
	if is_free_without_queue(name) then
		wake_others(name, WAKE_ONE)
		return 2
	end
	if has_owner(name) then
		limit_to_longest_hold(name)
		return 1
	end
	if leave_to_kept_holds(name) then
		-- The lock will be free earlier than the waiters know.
		notify_waiters(name)
		return 1
	end
	redis.call('DEL', name.lock, name.holds)
	notify_waiters(name)
	return 2
end
