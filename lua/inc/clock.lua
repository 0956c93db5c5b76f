-- Time and TTLs.

-- The server's clock, never the caller's. It is read once, when it is first asked for: a script is one moment.
local clock_us

local function now_us()
	if not clock_us then
		local now = redis.call('TIME')
		clock_us = now[1] * 1000000 + now[2]
	end
	return clock_us
end

local function now_ms() return math.floor(now_us() / 1000) end

-- A number of any size as text, without an exponent.
local function digits(number) return string.format('%.0f', number) end

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
