-- The server's clock.

-- Scripts use the server's clock, never the client's. Call TIME once, and use the same time in the whole script: to others, the
-- script runs at a single moment.
local clock_us

local function now_us()
	if not clock_us then
		local now = redis.call('TIME')
		clock_us = now[1] * 1000000 + now[2]
	end
	return clock_us
end

local function now_ms() return math.floor(now_us() / 1000) end

-- A number of any size as text. Lua's own conversion writes large numbers with an exponent.
local function digits(number) return string.format('%.0f', number) end
