-- To reclaim the permits whose holders did not renew or release them.
-- include: now
-- include: permits

local RECLAIMED_MAX = 100 -- at once: a script must not keep the server from its other clients

local function first_ids(key, until_ms, most)
	return redis.call('ZRANGE', key, '-inf', digits(until_ms), 'BYSCORE', 'LIMIT', 0, most)
end

-- Returns how many were reclaimed; they are in no set any more, and not free yet.
local function reclaim(name)
	-- Without a deadline up to here no permit has ended, neither ours nor one of Java's.
	if not first_ids(name.permits, now_ms() + AHEAD_MS, 1)[1] then
		return 0
	end
	-- Fails without the right to INCRBY, before anything is removed that could then not be counted.
	redis.call('INCRBY', name.lock, 0)
	local count = 0
	for _, id in ipairs(first_ids(name.ends, now_ms(), RECLAIMED_MAX)) do
		redis.call('ZREM', name.ends, id)
		redis.call('HDEL', name.holds, string.match(id, '^%x+') or '')
		count = count + redis.call('ZREM', name.permits, id)
	end
	for _, id in ipairs(first_ids(name.permits, now_ms() - BEHIND_MS, RECLAIMED_MAX)) do
		count = count + redis.call('ZREM', name.permits, id)
	end
	return count
end
