-- Take a lock that only one owner has at a time: of all kinds but of read locks.
-- include: request
-- include: rights
-- include: hold_record
-- include: hold_record_extend
-- include: ttl_extend
-- include: acquire

local function issue_token(name)
	if name.counter and (want_token or name.is_counted) then
		-- wire: RFencedLock draws at every acquisition, re-entries too
		redis.call('INCR', name.counter)
		-- As text: a number in a script has 53 bits only.
		return redis.call('GET', name.counter)
	end
	return '-'
end

-- The first hold of a lock that has only one owner: {hold count, token}, or an error with nothing taken.
-- The lock hash has been written to, but for its time to live.
-- needed: commands that its renewal and release need besides, for rights.lua.
local function acquire_free(name, token, needed)
	local steps = {
		-- What an expired or broken hold left behind. Not before the lock's own write: a
		-- script that has deleted something may go on when the server is full.
		{ 'DEL', name.holds, name.ends },
		{ 'HSET', name.holds, hold_id, new_hold_record(name, token) },
		{ 'PEXPIRE', name.lock, lease_ms },
		{ 'PEXPIRE', name.holds, lease_ms },
		{ 'PTTL', name.lock },
		{ 'HEXISTS', name.lock, name.field },
		{ 'HVALS', name.holds },
		{ 'HGET', name.holds, hold_id },
		{ 'HDEL', name.holds, '' },
	}
	for _, step in ipairs(needed) do
		steps[#steps + 1] = step
	end
	local err = try_all(steps, {
		{ 'HDEL', name.lock, name.field, 'mode' },
		{ 'DEL', name.lock },
		{ 'DEL', name.holds },
	})
	return err or { 1, token }
end

-- One more hold of an owner that has the lock; or the same request again, which counts nothing.
local function reenter(name)
	local entry = redis.call('HGET', name.holds, hold_id)
	local token
	if entry then
		local _, _, _, drawn = hold_record_parse(entry)
		token = drawn
		hold_record_extend(name.holds, hold_id, entry, lease_ms)
	else
		token = issue_token(name)
		redis.call('HINCRBY', name.lock, name.field, 1)
		redis.call('HSET', name.holds, hold_id, new_hold_record(name, token))
	end
	extend(name.lock, lease_ms)
	extend(name.holds, lease_ms)
	return { tonumber(redis.call('HGET', name.lock, name.field)), token }
end
