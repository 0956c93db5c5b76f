-- Whether a waiter that is woken now finds something to acquire.

local function is_available(name)
	if name.permits then
		return (tonumber(redis.pcall('GET', name.lock)) or 0) > 0
	end
	return redis.pcall('EXISTS', name.lock) == 0
end
