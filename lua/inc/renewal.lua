-- The frame of every renewal: renew(name, owner) pushes the lease forward and gives the time to live, or nil
-- when the owner does not hold that name any more.
-- include: names
-- include: overwritten
-- include: hold_record
-- include: hold_record_extend
-- include: ttl_extend
-- include: kept_hold
-- include: replica

local function renew_one(name, renew)
	local entry = redis.call('HGET', name.holds, hold_id)
	local owner = hold_record_parse(entry or '')
	local ttl_ms = owner and not kept_until(owner) and renew(name, owner)
	if not ttl_ms then
		return nil
	end
	extend(name.holds, lease_ms)
	hold_record_extend(name.holds, hold_id, entry, lease_ms)
	return ttl_ms
end

local function renew_all(renew)
	local lost, least_ttl_ms
	for index, name in ipairs(names) do
		local key_type = overwritten(name)
		local ttl_ms = not key_type and renew_one(name, renew)
		if ttl_ms then
			least_ttl_ms = math.min(least_ttl_ms or ttl_ms, ttl_ms)
		else
			lost = lost or { index, key_type }
		end
	end
	if lost then
		return replica_error(names[lost[1]]) or lost
	end
	return { 0, least_ttl_ms }
end
