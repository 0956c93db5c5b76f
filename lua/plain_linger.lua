-- Instead of a release: leave the hold where it is, and let the lock end by itself. With further
-- holds of its owner the time to live is only raised; the last of them shortens it as well.
-- KEYS     for each name: lock hash, holds hash, channel
-- ARGV[1]  hold id
-- ARGV[2]  what is left of the lock, in ms
-- ARGV[3]  message that wakes the waiters, so that they learn of an earlier end
-- Returns  one number a name: 1 done, 0 no such hold any more
local KEYS_PER_NAME = 3
local hold_id, left_ms, message = ARGV[1], ARGV[2], ARGV[3]

-- include: entry
-- include: extend
-- include: publish

local function linger(lock, holds, channel)
	local entry = redis.call('HGET', holds, hold_id)
	local owner = entry and entry_parse(entry)
	local count = owner and tonumber(redis.call('HGET', lock, owner))
	if not count then
		return 0
	end
	if count > 1 then
		extend(lock, left_ms)
		extend(holds, left_ms)
		return 1
	end
	redis.call('PEXPIRE', lock, left_ms)
	redis.call('PEXPIRE', holds, left_ms)
	publish(channel, message)
	return 1
end

local reply = {}
for i = 1, #KEYS, KEYS_PER_NAME do
	reply[#reply + 1] = linger(KEYS[i], KEYS[i + 1], KEYS[i + 2])
end
return reply
