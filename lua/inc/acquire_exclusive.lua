-- To acquire a lock that has one owner at a time: any kind but a read lock.
-- include: request
-- include: request_options
-- include: rights
-- include: append
-- include: hold_record
-- include: hold_record_extend
-- include: ttl_extend
-- include: acquire

local function issue_token(name)
	if name.counter and (want_token or name.is_counted) then
		-- wire: RFencedLock issues a token at every acquisition, re-entries too.
		redis.call('INCR', name.counter)
		-- As text: a number in a script has 53 bits only.
		return redis.call('GET', name.counter)
	end
	return NO_TOKEN
end

-- The first hold, once its field is in the lock hash. needed: commands that its renewal and release need besides those
-- below, to try their rights.
local function acquire_free(name, token, needed)
	local steps = {
		{ 'HSET', name.holds, hold_id, new_hold_record(name, token) },
		{ 'PEXPIRE', name.lock, lease_ms },
		{ 'PEXPIRE', name.holds, lease_ms },
	}
	if tries_rights or not name.is_absent then
		-- Leftovers of an expired or broken hold. Not before the lock's own write: a full server lets a
		-- script go on that has deleted something.
		table.insert(steps, 1, { 'DEL', name.holds, name.ends })
	end
	if tries_rights then
		append(steps, {
			{ 'HLEN', name.lock },
			{ 'PTTL', name.lock },
			{ 'HEXISTS', name.lock, name.field },
			{ 'HVALS', name.holds },
			{ 'HGET', name.holds, hold_id },
			{ 'HDEL', name.holds, '' },
		})
		append(steps, needed)
	end
	local err = try_all(steps, {
		{ 'HDEL', name.lock, name.field, 'mode' },
		{ 'DEL', name.lock },
		{ 'DEL', name.holds },
	})
	return err or { count = 1, token = token }
end

-- One more hold of an owner that has the lock; or the same request again, which adds none.
local function reenter(name)
	local record = redis.call('HGET', name.holds, hold_id)
	local token
	if record then
		local _, _, _, issued = hold_record_parse(record)
		token = issued
		hold_record_extend(name.holds, hold_id, record, lease_ms)
	else
		token = issue_token(name)
		redis.call('HINCRBY', name.lock, name.field, 1)
		redis.call('HSET', name.holds, hold_id, new_hold_record(name, token))
	end
	extend(name.lock, lease_ms)
	extend(name.holds, lease_ms)
	return { count = tonumber(redis.call('HGET', name.lock, name.field)), token = token }
end
