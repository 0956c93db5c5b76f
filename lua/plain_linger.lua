-- Instead of a release: leave the lock taken, and let it end by itself, with an owner that is nobody's.
-- With further holds of the old owner the time to live is only raised; the last one sets it.
-- KEYS     for each name: lock hash, holds hash
-- ARGV[1]  hold id
-- ARGV[2]  what is left of the lock, in ms
-- ARGV[3]  message that wakes the waiters, so that they learn of an earlier end
-- ARGV[4+] for each name: channel
-- Returns  one number a name: 2 done, 0 no such hold any more
local KEYS_PER_NAME = 2
local FIXED_ARGS = 3
local hold_id, left_ms, message = ARGV[1], ARGV[2], ARGV[3]

-- include: entry
-- include: extend
-- include: publish
-- include: lingering

local function linger(lock, holds, channel)
	local entry = redis.call('HGET', holds, hold_id)
	if not entry then
		return 0
	end
	local owner, since_ms, _, token, note = entry_parse(entry)
	local count = tonumber(redis.call('HGET', lock, owner))
	-- The first write, and one that a full server allows; those behind it are allowed then too.
	redis.call('HDEL', holds, hold_id)
	if not count then
		return 0
	end
	if not lingering_end(owner) then
		local nobody = lingering_owner(owner, now_ms() + left_ms)
		redis.call('HINCRBY', lock, nobody, 1)
		if count > 1 then
			redis.call('HINCRBY', lock, owner, -1)
		else
			redis.call('HDEL', lock, owner)
		end
		owner = nobody
	end
	redis.call('HSET', holds, hold_id, entry_make(owner, since_ms, left_ms, token, note))
	if redis.call('HLEN', lock) > 1 then
		extend(lock, left_ms)
		extend(holds, left_ms)
	else
		redis.call('PEXPIRE', lock, left_ms)
		redis.call('PEXPIRE', holds, left_ms)
		publish(channel, message)
	end
	return 2
end

local reply = {}
for i = 1, #KEYS, KEYS_PER_NAME do
	local channel = ARGV[FIXED_ARGS + (i + KEYS_PER_NAME - 1) / KEYS_PER_NAME]
	reply[#reply + 1] = linger(KEYS[i], KEYS[i + 1], channel)
end
return reply
