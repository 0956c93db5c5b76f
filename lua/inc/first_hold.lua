-- The first hold of an owner, and its further ones.

-- include: ttl
-- include: acquire

local function issue_token(name)
	if name.is_counted then
		-- wire: RFencedLock issues a token at every acquisition, re-entries too.
		redis.call('INCR', name.counter)
		-- As text: a number in a script has 53 bits only.
		return redis.call('GET', name.counter)
	end
	return NO_TOKEN
end

-- The first hold: these are the fields of the lock hash, which has its TTL before anything else could be refused.
local function acquire_free(name, token, ...)
	redis.call('HSET', name.lock, ...)
	-- Leftovers of an expired or broken hold are deleted. Not before the lock's own write: a full server lets a script go on that
	-- has deleted something.
	if is_error(redis.pcall('PEXPIRE', name.lock, lease_ms)) or is_error(redis.pcall('DEL', name.holds, name.ends or name.holds)) then
		-- The default user's rights are not tried. One of the last commands raises the error.
		redis.pcall('DEL', name.lock)
		redis.pcall('HDEL', name.lock, name.field, 'mode')
		redis.call('PEXPIRE', name.lock, lease_ms)
		redis.call('DEL', name.holds, name.ends or name.holds)
	end
	redis.call('HSET', name.holds, hold_id, new_hold_record(name, token))
	redis.call('PEXPIRE', name.holds, lease_ms)
	return 1, token
end

-- One more hold of an owner that has the lock; or the same request again, which adds none.
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
