-- TTLs only ever grow here, but by a release.

-- include: clock

-- A TTL only ever grows here: an owner may have a longer lease by another of its holds.
-- A key without a TTL (after a user's PERSIST) gets one.
-- Returns the TTL that the key has now.
local function extend(key, lease_ms)
	local ttl_ms = redis.call('PTTL', key)
	if ttl_ms >= tonumber(lease_ms) then return ttl_ms end
	redis.call('PEXPIRE', key, lease_ms)
	return tonumber(lease_ms)
end

-- Writes to a key that lasts for ttl_ms then, at least: it is made neither where the user has no right to set a TTL, nor is
-- there a moment at which something else could fail. Returns the reply of the command.
local function write_for(ttl_ms, command, key, ...)
	extend(key, digits(ttl_ms))
	local reply = redis.call(command, key, ...)
	extend(key, digits(ttl_ms))
	return reply
end
