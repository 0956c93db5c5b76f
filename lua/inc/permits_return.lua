-- To make permits free again.
-- include: denied

-- How many are free then. nil where the counter is not there: the next acquisition counts anew what is held.
local function return_permits(name, count)
	local free = redis.pcall('GET', name.lock)
	if count == 0 or not free then
		return nil
	end
	if not is_error(free) then
		free = redis.pcall('INCRBY', name.lock, count)
	end
	if is_error(free) then
		name.overwritten = redis.pcall('TYPE', name.lock).ok
		return nil
	end
	return free
end
