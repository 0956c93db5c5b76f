-- A TTL only ever grows here: an owner may have a longer lease by another of its holds.
-- A key without a TTL (after a user's PERSIST) gets one.
local function extend(key, lease_ms)
	if redis.call('PTTL', key) < tonumber(lease_ms) then
		redis.call('PEXPIRE', key, lease_ms)
	end
end
