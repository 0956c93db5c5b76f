-- The server's clock, read once: a script is one moment. Never the client's.
local function clock_us()
	local now = redis.call('TIME')
	return now[1] * 1000000 + now[2]
end

local now_us = clock_us()
local now_ms = math.floor(now_us / 1000)

-- Without an exponent, whatever its size.
local function digits(number)
	return string.format('%.0f', number)
end
