-- The holds of readers. wire: as many as the reader's field in the lock hash says, each with a time-out key
-- of its own, "{NAME}:OWNER:rwlock_timeout:N" from 1 on (RedissonReadLock).
-- include: now
-- include: lingering

local WRITE = ':write' -- wire: RedissonWriteLock.getLockName

local function timeout_key(name, owner, number)
	return name.timeouts .. ':' .. owner .. ':rwlock_timeout:' .. digits(number)
end

local function is_of_writer(field)
	return string.sub(field, -#WRITE) == WRITE
		or string.find(field, WRITE .. LINGERING, 1, true) ~= nil
end

-- How long the longest of that reader's holds lasts; 0 when none does.
local function reader_ms(name, owner, count)
	local longest_ms = 0
	for number = 1, count do
		longest_ms = math.max(longest_ms, redis.call('PTTL', timeout_key(name, owner, number)))
	end
	return longest_ms
end
