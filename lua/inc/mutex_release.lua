-- The release of plain and fair locks.

-- include: release
-- include: remaining
-- include: mutex_notify

-- Leaves the lock to the holds that are left. False: none is.
local function leave_to_rest(name)
	local is_held, is_earlier = leave_to_holders(name, redis.call('HKEYS', name.lock), 0, set_ttl)
	if is_earlier then notify_waiters(name) end
	return is_held
end

local function release_mutex(name, owner, count)
	-- Where its slot is on its way to another node, even to look for a key that is gone is an error.
	local is_last = count == 1 and redis.pcall('HLEN', name.lock) == 1
	remove_one(name, owner, count)
	if not is_last and leave_to_rest(name) then return 1 end
	redis.pcall('DEL', name.lock, name.holds)
	notify_waiters(name)
	return 2
end
