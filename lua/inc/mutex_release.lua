-- How plain and fair locks are released.

-- include: release
-- include: remaining
-- include: mutex_notify

-- Leave the lock to the remaining holds, and notify waiters if it may now expire earlier than they know. False: no hold
-- remains.
local function leave_to_rest(name)
	local is_held, is_earlier = leave_to_holders(name, redis.call('HKEYS', name.lock), 0, set_ttl)
	if is_earlier then notify_waiters(name) end
	return is_held
end

local function release_mutex(name, owner, count)
	-- Count the fields now: once the last hold is removed, the hash does not exist. While the slot of the lock moves to another
	-- node, even reading a missing key is an error.
	local is_last = count == 1 and redis.pcall('HLEN', name.lock) == 1
	remove_one(name, owner, count)
	if not is_last and leave_to_rest(name) then return 1 end
	redis.pcall('DEL', name.lock, name.holds)
	notify_waiters(name)
	return 2
end
