-- For those who acquire a read or write lock, behind readers_ended.lua.

-- Nothing but its mode is left of it: the last of its readers was dropped.
local function free_if_empty(name)
	if not name.is_free and redis.call('HLEN', name.lock) == 1 then
		redis.call('DEL', name.lock, name.holds, name.ends)
		name.is_free = true
	end
end
