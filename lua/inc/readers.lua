-- The holds of a reader. wire: as many as its field in the lock hash says, each with a timeout key of its own, from 1 on
-- (RedissonReadLock).
-- include: timeout_key

-- How long the longest of the reader's holds lasts; 0 when none does.
local function reader_ttl_ms(name, owner, count)
	local longest_ms = 0
	for number = 1, count do
		longest_ms = math.max(longest_ms, redis.call('PTTL', timeout_key(name, owner, number)))
	end
	return longest_ms
end
