-- The readers of a read/write lock: how long each lasts.

-- include: ttl
-- include: value
-- include: reader_holds

-- The holds of a reader. wire: as many as its field in the lock hash says, each with a timeout key of its own, from 1 on
-- (RedissonReadLock).
-- How long the longest of the reader's holds lasts; 0 when none does. While the slot of the lock moves to another node of
-- a cluster, a timeout key that is not here may be there. That is an error, by which the request comes again.
local function reader_ttl_ms(name, owner, count)
	local longest_ms = 0
	for number = 1, count do
		local key = timeout_key(name, owner, number)
		local ttl_ms = redis.call('PTTL', key)
		if ttl_ms < 0 then
			-- wire: PTTL of one key is served at the new node; a command with two, of which one is missing, at neither.
			redis.call('EXISTS', name.lock, key)
		end
		longest_ms = math.max(longest_ms, ttl_ms)
	end
	return longest_ms
end

-- When our readers expire: a sorted set of their owners, each with the time at which the last of its timeout keys
-- does. So a script finds the expired ones of many readers, and the one that lasts longest, without a look at each.
-- Java's readers are not in it.
-- Deletes a value that a user wrote over the set. Readers are in it again from their next renewal on.
local function delete_overwritten_ends(name)
	if other_type(name.ends, 'zset') then redis.call('DEL', name.ends) end
end

-- One command a line: in an older server's error only the line shows which right is missing.
local function has_java_readers(name)
	if redis.call('HGET', name.lock, 'mode') ~= 'read' then return false end
	local ours = redis.call('ZCARD', name.ends)
	return redis.call('HLEN', name.lock) - 1 > ours
end

-- The set lasts so much longer than our readers when Java's are beside them, which may keep the lock: our expired readers
-- must be known for as long as the lock is held.
local ENDS_MS = 86400000

-- This reader has a hold that lasts for left_ms.
local function record_end(name, owner, left_ms)
	delete_overwritten_ends(name)
	-- A full server allows this, and what comes after a write.
	redis.call('ZREM', name.ends, '')
	-- As write_for does it, whose line would not show which right is missing.
	extend(name.ends, digits(left_ms))
	redis.call('ZADD', name.ends, 'GT', digits(now_ms() + left_ms), owner)
	extend(name.ends, digits(left_ms))
	if has_java_readers(name) then extend(name.ends, digits(left_ms + ENDS_MS)) end
end

-- All its holds then last for lease_ms at least; a hold whose timeout key has expired gets another.
local function extend_reader(name, owner, count, lease_ms)
	for number = 1, count do
		local key = timeout_key(name, owner, number)
		-- A full server lets a script extend a key, but make none.
		if redis.call('PTTL', key) < tonumber(lease_ms)
			and redis.call('PEXPIRE', key, lease_ms) == 0 then
			redis.call('SET', key, 1, 'PX', lease_ms)
		end
	end
end
