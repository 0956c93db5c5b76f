-- Permits whose lease has ended.

-- include: suffix
-- include: clock
-- include: permit_ids
-- include: slots

local RECLAIMED_MAX = 1000 -- at once: a script must not keep the server from its other clients

local function first_ids(key, until_ms, most)
	return redis.call('ZRANGE', key, '-inf', digits(until_ms), 'BYSCORE', 'LIMIT', 0, most)
end

-- Returns how many were reclaimed; they are in no set any more, and not free yet. Sets name.has_ended: there may be more than
-- one script reclaims.
local function reclaim(name)
	-- Without a deadline up to here no permit has ended, neither ours nor one of Java's.
	if not first_ids(name.permits, now_ms() + AHEAD_MS, 1)[1] then return 0 end
	-- Fails without the right to INCRBY, before anything is removed that could then not be counted.
	redis.call('INCRBY', name.lock, 0)
	-- The next acquisition finds out which slots are in use still.
	local count, fields = 0, { SLOTS }
	local ended = first_ids(name.ends, now_ms(), RECLAIMED_MAX)
	for _, id in ipairs(ended) do
		local hold_id = string.match(id, '^%x+') or ''
		fields[#fields + 1], fields[#fields + 2] = hold_id, hold_id .. STOP
	end
	if #ended > 0 then
		redis.call('ZREM', name.ends, unpack(ended))
		redis.call('HDEL', name.holds, unpack(fields))
		count = redis.call('ZREM', name.permits, unpack(ended))
		-- What is there without a permit is left over.
		if count == name.held then redis.call('DEL', name.holds) end
	end
	local overdue = first_ids(name.permits, now_ms() - BEHIND_MS, RECLAIMED_MAX)
	if #overdue > 0 then
		count = count + redis.call('ZREM', name.permits, unpack(overdue))
	end
	name.has_ended = #ended == RECLAIMED_MAX or #overdue == RECLAIMED_MAX
	return count
end
