-- How an owner gets its first hold on a lock, and further ones.

-- include: ttl
-- include: acquire

-- Issue a fencing token if the name has a counter. Return it as text.
local function issue_token(name)
	if name.is_counted then
		-- wire: RFencedLock issues a token at every acquisition, also when an owner re-enters.
		redis.call('INCR', name.counter)
		-- GET returns the token as text. The number that INCR returns is exact only up to 53 bits, as all of Lua's numbers.
		return redis.call('GET', name.counter)
	end
	return NO_TOKEN
end

-- Create the lock hash with these fields, and the record of the hold. The lock hash gets its TTL before any other command can
-- fail.
local function acquire_free(name, token, ...)
	redis.call('HSET', name.lock, ...)
	-- Delete what an expired or broken hold has left, but write to the lock first: a server whose memory is full must refuse
	-- the script there. After a deletion it would let the script write more.
	if is_error(redis.pcall('PEXPIRE', name.lock, lease_ms)) or is_error(redis.pcall('DEL', name.holds, name.ends or name.holds)) then
		-- A command was denied, because the rights of the default user are not tried before: undo HSET. Then run both commands
		-- again, so that the denied one raises its error.
		redis.pcall('DEL', name.lock)
		redis.pcall('HDEL', name.lock, name.field, 'mode')
		redis.call('PEXPIRE', name.lock, lease_ms)
		redis.call('DEL', name.holds, name.ends or name.holds)
	end
	redis.call('HSET', name.holds, hold_id, new_hold_record(name, token))
	redis.call('PEXPIRE', name.holds, lease_ms)
	return 1, token
end

-- Add a hold for an owner that has the lock. A repeated request adds none.
local function reenter(name)
	local record = redis.call('HGET', name.holds, hold_id)
	local token
	if record then
		local _, _, _, issued = hold_record_parse(record)
		token = issued
		hold_record_extend(name.holds, hold_id, record, lease_ms)
		extend(name.holds, lease_ms)
	else
		token = issue_token(name)
		redis.call('HINCRBY', name.lock, name.field, 1)
		write_for(lease_ms, 'HSET', name.holds, hold_id, new_hold_record(name, token))
	end
	extend(name.lock, lease_ms)
	return tonumber(redis.call('HGET', name.lock, name.field)), token
end
