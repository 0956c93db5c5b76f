-- How permits whose leases have ended are reclaimed.

-- include: suffix
-- include: clock
-- include: permit_ids
-- include: slots

-- A script reclaims at most this many permits of ours, and as many of Redisson's: it must not block the server for its other
-- clients.
local RECLAIMED_MAX = 1000

local function first_ids(key, until_ms, count_max)
	return redis.call('ZRANGE', key, '-inf', digits(until_ms), 'BYSCORE', 'LIMIT', 0, count_max)
end

-- Remove the permits that have ended, and return how many, so that the caller adds them to the counter. Set name.has_ended if
-- more permits may have ended than one script reclaims.
local function reclaim(name)
	-- Return if no permit has a deadline before this time: then none has ended, neither ours nor Redisson's. A permit of ours that
	-- Redisson has reclaimed is only in name.ends.
	if not first_ids(name.permits, now_ms() + AHEAD_MS, 1)[1] and not first_ids(name.ends, now_ms(), 1)[1] then return 0 end
	-- Fail if the user may not run INCRBY, before a permit is removed that could then not be counted.
	redis.call('INCRBY', name.lock, 0)
	-- Delete the field of slots, too: the next acquisition makes it anew.
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
		-- If no permit is held any more, delete the rest of the holds hash.
		if count == name.held then redis.call('DEL', name.holds) end
	end
	local overdue = first_ids(name.permits, now_ms() - BEHIND_MS, RECLAIMED_MAX)
	if #overdue > 0 then
		count = count + redis.call('ZREM', name.permits, unpack(overdue))
	end
	name.has_ended = #ended == RECLAIMED_MAX or #overdue == RECLAIMED_MAX
	return count
end
