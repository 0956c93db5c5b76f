-- A TTL only ever grows here: an owner may have a longer lease by another of its holds.
-- A key without a TTL (after a user's PERSIST) gets one.
-- Returns the TTL that the key has now.
local function extend(key, lease_ms)
	local ttl_ms = redis.call('PTTL', key)
	if ttl_ms >= tonumber(lease_ms) then
		return ttl_ms
	end
	redis.call('PEXPIRE', key, lease_ms)
	return tonumber(lease_ms)
end
