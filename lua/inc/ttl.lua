-- How a TTL is raised. Only a release lowers a TTL.

-- include: clock

-- Raise the TTL of a key to lease_ms, and return the TTL that it then has. A higher TTL stays: the owner may have another hold
-- with a longer lease. A key without a TTL, after a user's PERSIST, gets one.
local function extend(key, lease_ms)
	local ttl_ms = redis.call('PTTL', key)
	if ttl_ms >= tonumber(lease_ms) then return ttl_ms end
	redis.call('PEXPIRE', key, lease_ms)
	return tonumber(lease_ms)
end

-- Run a command that writes to a key, and make the key last ttl_ms at least. Set the TTL before and after the write. If the
-- key does not exist yet, the first PEXPIRE changes nothing. But it fails if the user may not set a TTL, and then the write
-- creates no key. The second PEXPIRE directly follows the write. Return the command's reply.
local function write_for(ttl_ms, command, key, ...)
	extend(key, digits(ttl_ms))
	local reply = redis.call(command, key, ...)
	extend(key, digits(ttl_ms))
	return reply
end
