-- When our readers expire: a sorted set of their owners, each with the time at which the last of its timeout keys
-- does. So a script finds the expired ones of many readers, and the one that lasts longest, without a look at each.
-- Java's readers are not in it.

-- Deletes a value that a user wrote over the set. Readers are in it again from their next renewal on.
local function delete_overwritten_ends(name)
	local key_type = redis.pcall('TYPE', name.ends).ok
	if key_type and key_type ~= 'zset' and key_type ~= 'none' then
		redis.call('DEL', name.ends)
	end
end

-- One command a line: in an older server's error only the line shows which right is missing.
local function has_java_readers(name)
	local ours = redis.call('ZCARD', name.ends)
	return redis.call('HGET', name.lock, 'mode') == 'read'
		and redis.call('HLEN', name.lock) - 1 > ours
end
