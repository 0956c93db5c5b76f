-- The record of the last holder, for --remember.

-- include: suffix
-- include: error
-- include: clock
-- include: names
-- include: record
-- include: kept

-- Write rlock_last:{NAME}, a hash with the fields kind, owner, since, until (ms by the server's clock), end (how the command
-- ended) and note. A nested hold leaves no such hash: its owner still holds the lock.
-- Call this before the hold is released or kept. released_id: "HOLD_ID TTL_MS KIND END"; the hold id alone: remember nothing.
-- kept_ms: how long the hold is kept. The key is not in KEYS, and errors are ignored: if the user has no right to the key, or
-- the memory of the server is full, the hold is released all the same.
local function remember_holds(released_id, kept_ms)
	local ttl_ms, kind, how = string.match(released_id, '^%S+ (%d+) (%l+) (.*)$')
	for _, name in ipairs(ttl_ms and names or {}) do
		local record = redis.pcall('HGET', name.holds, hold_id)
		local owner, since_ms, _, _, note = hold_record_parse(type(record) == 'string' and record or '')
		local is_nested = owner and kind ~= 'sem' and redis.pcall('HGET', name.lock, owner) ~= '1'
		if owner and not is_nested and not kept_until(owner) then
			-- A hold that was asked to stop is not kept.
			local left_ms = redis.pcall('HGET', name.holds, hold_id .. STOP) and 0 or tonumber(kept_ms)
			local key, until_ms = string.gsub(name.holds, '^rlock_holds', 'rlock_last'), digits(now_ms() + left_ms)
			owner = string.gsub(owner, ':write$', '')
			local fields = { 'kind', kind, 'owner', owner, 'since', since_ms, 'until', until_ms, 'end', how, 'note', note }
			-- Run PEXPIRE before HSET: if the user may not set a TTL, the hash is not created.
			if not is_error(redis.pcall('PEXPIRE', key, ttl_ms)) and not is_error(redis.pcall('HSET', key, unpack(fields))) then
				redis.pcall('PEXPIRE', key, digits(ttl_ms + left_ms))
			end
		end
	end
end
