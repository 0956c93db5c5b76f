-- The server's clock, never the caller's. It is read once: a script is one moment.
local function clock_us()
	local now = redis.call('TIME')
	return now[1] * 1000000 + now[2]
end

local now_us = clock_us()
local now_ms = math.floor(now_us / 1000)

-- A number of any size as text, without an exponent.
local function digits(number)
	return string.format('%.0f', number)
end
