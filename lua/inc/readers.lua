-- The holds of readers. wire: as many as the reader's field in the lock hash says, each with a time-out key
-- of its own, "{NAME}:OWNER:rwlock_timeout:N" from 1 on (RedissonReadLock). Needs: now, lingering, fields.
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

-- All of a reader's holds last so long at least; one whose key has gone gets another.
local function extend_reader(name, owner, count, lease_ms)
	for number = 1, count do
		local key = timeout_key(name, owner, number)
		-- A full server lets a key be prolonged, but none be made.
		if redis.call('PTTL', key) < tonumber(lease_ms)
			and redis.call('PEXPIRE', key, lease_ms) == 0 then
			redis.call('SET', key, 1, 'PX', lease_ms)
		end
	end
end

-- Nothing but its mode is left of it: the last of its readers was dropped.
local function free_if_left(name)
	if not name.is_free and redis.call('HLEN', name.lock) == 1 then
		redis.call('DEL', name.lock, name.holds, name.ends)
		name.is_free = true
	end
end

-- Until when a lock in mode write is one: nil for as long as its writer has it, else how long the last of his
-- holds lingers yet; 0 or less when none does, and only reads of his are left.
local function write_lingers_ms(name)
	local last_ms = 0
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' and is_of_writer(field) then
			local end_ms = lingering_end(field)
			if not end_ms then
				return nil
			end
			last_ms = math.max(last_ms, end_ms)
		end
	end
	return last_ms - now_ms
end
