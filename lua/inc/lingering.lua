-- A hold that lingers has its end in its owner, "OWNER:lingering:END_MS" by the server's clock: it is
-- nobody's, so that no process left behind by the holder can re-enter the lock.
local LINGERING = ':lingering:'

local function now_ms()
	local now = redis.call('TIME')
	return now[1] * 1000 + math.floor(now[2] / 1000)
end

local function lingering_owner(owner, end_ms)
	return owner .. LINGERING .. string.format('%.0f', end_ms)
end

local function lingering_end(owner)
	return tonumber(string.match(owner, LINGERING .. '(%d+)$'))
end

-- With its last other hold gone the lock ends when the last of those that linger does. Whether there is
-- one that does still.
local function leave_to_lingering(lock, holds)
	local last_ms = 0
	for _, owner in ipairs(redis.call('HKEYS', lock)) do
		last_ms = math.max(last_ms, lingering_end(owner) or 0)
	end
	local left_ms = last_ms > 0 and last_ms - now_ms() or 0
	if left_ms <= 0 then
		return false
	end
	redis.call('PEXPIRE', lock, string.format('%.0f', left_ms))
	redis.call('PEXPIRE', holds, string.format('%.0f', left_ms))
	return true
end
