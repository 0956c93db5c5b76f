-- The last holder of a lock, which --remember keeps for a while after the release.

-- include: suffix
-- include: error
-- include: clock
-- include: names
-- include: record
-- include: kept

-- The last holder of a lock, which --remember keeps for a while after the release.

-- The hash beside each name of a hold that is about to be released: "kind", "owner", "since" and "until" by the server's clock in
-- ms, "end", how the command ended, and "note", as in the record. It is named after the holds hash, and in no KEYS: a user
-- without the right to it, or a server that is full, releases all the same. Nothing is kept of a nested hold, after which its
-- owner holds the lock on. To be run before anything else is done to the hold, which lasts for kept_ms more.
local function remember_holds()
	local ttl_ms, kind, how = string.match(ARGV[1], '^%S+ (%d+) (%l+) (.*)$')
	for _, name in ipairs(ttl_ms and names or {}) do
		local record = redis.pcall('HGET', name.holds, hold_id)
		local owner, since_ms, _, _, note = hold_record_parse(type(record) == 'string' and record or '')
		local is_nested = owner and kind ~= 'sem' and redis.pcall('HGET', name.lock, owner) ~= '1'
		if owner and not is_nested and not kept_until(owner) then
			-- It is not kept where its process was told to stop.
			local left_ms = redis.pcall('HGET', name.holds, hold_id .. STOP) and 0 or tonumber(kept_ms)
			local key, until_ms = string.gsub(name.holds, '^rlock_holds', 'rlock_last'), digits(now_ms() + left_ms)
			owner = string.gsub(owner, ':write$', '')
			local fields = { 'kind', kind, 'owner', owner, 'since', since_ms, 'until', until_ms, 'end', how, 'note', note }
			-- It is made only where it gets a TTL.
			if not is_error(redis.pcall('PEXPIRE', key, ttl_ms)) and not is_error(redis.pcall('HSET', key, unpack(fields))) then
				redis.pcall('PEXPIRE', key, digits(ttl_ms + left_ms))
			end
		end
	end
end
