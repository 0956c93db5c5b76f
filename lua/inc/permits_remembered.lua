-- The total of a semaphore that is remembered.
-- include: permits_counter

-- nil when none is, and when a user has overwritten it.
local function remembered_total(name)
	local text = redis.call('GET', name.remembered)
	return text and is_permits_counter(text) and tonumber(text) or nil
end
