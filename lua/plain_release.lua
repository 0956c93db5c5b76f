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

-- The hold that is gone may have had a longer lease than those that stay: nobody would wait for them
-- longer than the longest of theirs.
local function limit_to_longest_lease(lock, holds)
	local longest_ms = 0
	for _, entry in ipairs(redis.call('HVALS', holds)) do
		local _, _, lease_ms = entry_parse(entry)
		longest_ms = math.max(longest_ms, tonumber(lease_ms) or 0)
	end
	if longest_ms > 0 and redis.call('PTTL', lock) > longest_ms then
		redis.call('PEXPIRE', lock, string.format('%.0f', longest_ms))
		redis.call('PEXPIRE', holds, string.format('%.0f', longest_ms))
	end
end

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
		limit_to_longest_lease(lock, holds)
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
