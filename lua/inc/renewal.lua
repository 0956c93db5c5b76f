-- The frame of every renewal: renew(name, owner) pushes the lease forward and gives the time to live, or nil
-- when the owner does not hold that name any more. Needs: names, entry, extend, now, lingering,
-- replica.
local function renew_all(renew)
	local lost_index, least_ttl_ms
	for index, name in ipairs(names) do
		local entry = redis.call('HGET', name.holds, hold_id)
		local owner, since_ms, entry_lease_ms, token, note = entry_parse(entry or '')
		local ttl_ms = owner and not lingering_end(owner) and renew(name, owner)
		if ttl_ms then
			extend(name.holds, lease_ms)
			if tonumber(lease_ms) > tonumber(entry_lease_ms) then
				redis.call('HSET', name.holds, hold_id,
					entry_make(owner, since_ms, lease_ms, token, note))
			end
			least_ttl_ms = math.min(least_ttl_ms or ttl_ms, ttl_ms)
		else
			lost_index = lost_index or index
		end
	end
	if lost_index then
		return refusal_of_replica(names[lost_index]) or { lost_index }
	end
	return { 0, least_ttl_ms }
end
