-- The readers of a read/write lock.

-- The name of the timeout key of one hold of a reader. wire: "{NAME}:OWNER:rwlock_timeout:N" (RedissonReadLock).
local TIMEOUT = ':rwlock_timeout:'
local function timeout_key(name, owner, number)
	return name.timeouts .. ':' .. owner .. TIMEOUT .. digits(number)
end

-- wire: what the field of a writer has after its owner (RedissonWriteLock.getLockName).
local WRITE = ':write'

local function is_writer_field(field)
	return string.sub(field, -#WRITE) == WRITE or string.find(field, WRITE .. KEPT, 1, true) ~= nil
end

-- The holds of a reader. wire: as many as its field in the lock hash says, each with a timeout key of its own, from 1 on
-- (RedissonReadLock).
-- How long the longest of the reader's holds lasts; 0 when none does.
local function reader_ttl_ms(name, owner, count)
	local longest_ms = 0
	for number = 1, count do
		longest_ms = math.max(longest_ms, redis.call('PTTL', timeout_key(name, owner, number)))
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
	local ours = redis.call('ZCARD', name.ends)
	return redis.call('HGET', name.lock, 'mode') == 'read'
		and redis.call('HLEN', name.lock) - 1 > ours
end

-- The set lasts so much longer than our readers when Java's are beside them, which may keep the lock: our expired readers
-- must be known for as long as the lock is held.
local ENDS_MS = 86400000

local function extend_ends(name, left_ms)
	extend(name.ends, digits(left_ms + (has_java_readers(name) and ENDS_MS or 0)))
end

-- This reader has a hold that lasts for left_ms.
local function record_end(name, owner, left_ms)
	delete_overwritten_ends(name)
	-- A full server allows this, and what comes after a write.
	redis.call('ZREM', name.ends, '')
	redis.call('ZADD', name.ends, 'GT', digits(now_ms() + left_ms), owner)
	extend_ends(name, left_ms)
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

-- How long that reader lasts; 0 when it is in the lock no longer.
local function our_reader_ttl_ms(name, owner)
	return reader_ttl_ms(name, owner, hold_count(redis.call('HGET', name.lock, owner)) or 0)
end

-- owners is a set: each of them loses all its holds.
local function remove_readers(name, owners)
	if next(owners) == nil then return end
	for owner in pairs(owners) do
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
	end
	-- By pcall: a value that a user wrote over the holds hash is no obstacle, it ends with the holds.
	local listed = redis.pcall('HGETALL', name.holds)
	for i = 1, #listed, 2 do
		local owner = hold_record_parse(listed[i + 1])
		if owner and owners[owner] then redis.call('HDEL', name.holds, listed[i]) end
	end
end

local EXPIRED_MAX = 100 -- at once: a script must not keep the server from its other clients

local function remove_if_expired(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	if count and reader_ttl_ms(name, owner, count) == 0 then
		remove_readers(name, { [owner] = true })
	end
end

-- Removes readers whose recorded end is over, EXPIRED_MAX at most. One that lasts longer was renewed by a Redisson
-- before 4.4, which renews the timeout keys of all readers: its end is recorded anew.
local function remove_expired(name)
	local expired = {}
	delete_overwritten_ends(name)
	for _, owner in ipairs(redis.call('ZRANGE', name.ends, '-inf', digits(now_ms()), 'BYSCORE',
		'LIMIT', 0, EXPIRED_MAX)) do
		local left_ms = our_reader_ttl_ms(name, owner)
		if left_ms > 0 then record_end(name, owner, left_ms) else expired[owner] = true end
	end
	remove_readers(name, expired)
end
