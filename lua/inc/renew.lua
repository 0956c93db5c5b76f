-- The part that all renewals have in common.

-- include: suffix
-- include: ttl
-- include: names
-- include: read_field
-- include: record
-- include: kept

-- Renew the hold of one name, and return its new TTL in ms; nil if the owner does not hold the lock any more. renew(name, owner,
-- record) extends the keys of the kind, and also returns the TTL, or nil.
local function renew_one(name, renew)
	local record = read_field(name, name.holds, hold_id)
	local owner = hold_record_parse(record or '')
	if not owner or kept_until(owner) then return nil end
	local ttl_ms = renew(name, owner, record)
	if ttl_ms then
		extend(name.holds, lease_ms)
		hold_record_extend(name.holds, hold_id, record, lease_ms)
		name.request = redis.call('HGET', name.holds, hold_id .. STOP)
	end
	return ttl_ms
end

local function renew_all(renew)
	local lost, least_ttl_ms, request
	for index, name in ipairs(names) do
		local ttl_ms = renew_one(name, renew)
		request = request or name.request and { index, name.request }
		if ttl_ms then
			least_ttl_ms = math.min(least_ttl_ms or ttl_ms, ttl_ms)
		else
			lost = lost or { index, name.overwritten }
		end
	end
	if lost then return replica_error(names[lost[1]]) or lost end
	return { 0, least_ttl_ms, request or nil }
end
