-- Give one hold back, for every name. Works on a server that is full: nothing here needs memory
-- before something was deleted.
-- KEYS     for each name: lock hash, holds hash
-- ARGV[1]  hold id
-- ARGV[2]  message that wakes the waiters
-- ARGV[3+] for each name: channel (no key: a user may lack the right to publish, and still release)
-- Returns  one number a name:
--          2 released, the lock is free        1 released, the lock is held on
--          3 free, but publishing was refused  0 no such hold
--          4 the hold was listed, but the lock is not its owner's any more: lost
local KEYS_PER_NAME = 2
local FIXED_ARGS = 2
local hold_id, message = ARGV[1], ARGV[2]

-- include: entry
-- include: publish
-- include: lingering

local function release(lock, holds, channel)
	local entry = redis.call('HGET', holds, hold_id)
	if not entry then
		return 0
	end
	local owner = entry_parse(entry)
	local count = tonumber(redis.call('HGET', lock, owner))
	-- The first write, and one that a full server allows; those behind it are allowed then too.
	redis.call('HDEL', holds, hold_id)
	if not count then
		return 4
	end
	if count > 1 then
		redis.call('HINCRBY', lock, owner, -1)
		return 1
	end
	redis.call('HDEL', lock, owner)
	if leave_to_lingering(lock, holds) then
		-- Earlier than those who wait were told.
		publish(channel, message)
		return 1
	end
	redis.call('DEL', lock, holds)
	-- wire: Redisson's waiters of a plain lock listen here; the message is its "unlock"
	return publish(channel, message) and 2 or 3
end

local reply = {}
for i = 1, #KEYS, KEYS_PER_NAME do
	local channel = ARGV[FIXED_ARGS + (i + KEYS_PER_NAME - 1) / KEYS_PER_NAME]
	reply[#reply + 1] = release(KEYS[i], KEYS[i + 1], channel)
end
return reply
