-- The last holder of a lock, which --remember keeps for a while after the release.

-- The hash beside each name of a hold that is about to be released: "kind", "owner", "since" and "until" by the server's clock in
-- ms, "end", how the command ended, and "note", as in the record. It is named after the holds hash, and in no KEYS: a user
-- without the right to it, or a server that is full, releases all the same. Nothing is kept of a nested hold, after which its
-- owner holds the lock on. text is "TTL_MS KIND END"; the hold lasts for kept_ms more.
local function remember_hold(hold_id, text, kept_ms, key_count)
	local ttl_ms, kind, how = string.match(text, '^(%d+) (%l+) (.*)$')
	for i = 1, #KEYS, key_count do
		local record = redis.pcall('HGET', KEYS[i + 1], hold_id)
		local owner, since_ms, _, _, note = hold_record_parse(type(record) == 'string' and record or '')
		local is_nested = owner and kind ~= 'sem' and redis.pcall('HGET', KEYS[i], owner) ~= '1'
		-- It is not kept where its process was told to stop.
		if kept_ms > 0 and redis.pcall('HGET', KEYS[i + 1], hold_id .. STOP) then kept_ms = 0 end
		if owner and not is_nested and not kept_until(owner) then
			local key, until_ms = string.gsub(KEYS[i + 1], '^rlock_holds', 'rlock_last'), digits(now_ms() + kept_ms)
			owner = string.gsub(owner, ':write$', '')
			local fields = { 'kind', kind, 'owner', owner, 'since', since_ms, 'until', until_ms, 'end', how, 'note', note }
			-- It is made only where it gets a TTL.
			if not is_error(redis.pcall('PEXPIRE', key, ttl_ms)) and not is_error(redis.pcall('HSET', key, unpack(fields))) then
				redis.pcall('PEXPIRE', key, digits(ttl_ms + kept_ms))
			end
		end
	end
end

-- The id of the hold that is to be released, or kept for kept_ms more: ARGV[1], of which the rest, if any, is to be remembered
-- of it. So it is read before anything else is done to the hold. key_count: how many keys each name has.
local function id_of_ending_hold(kept_ms, key_count)
	local hold_id, remembered = string.match(ARGV[1], '^(%S+) ?(.*)$')
	if remembered ~= '' then remember_hold(hold_id, remembered, tonumber(kept_ms), key_count) end
	return hold_id
end
