-- When our readers end: a sorted set of their owners, each with the time at which the last of its time-out keys
-- expires. Among many readers those that have ended, and the one that lasts longest, are found without a look at each.
-- Java's readers are not in it.

-- What somebody wrote over it goes. Readers are in it again from their next renewal on.
local function delete_overwritten_ends(name)
	local key_type = redis.pcall('TYPE', name.ends).ok
	if key_type and key_type ~= 'zset' and key_type ~= 'none' then
		redis.call('DEL', name.ends)
	end
end

-- One command a line: of an older server's err the line alone tells which right is missing.
local function has_java_readers(name)
	local ours = redis.call('ZCARD', name.ends)
	return redis.call('HGET', name.lock, 'mode') == 'read'
		and redis.call('HLEN', name.lock) - 1 > ours
end
