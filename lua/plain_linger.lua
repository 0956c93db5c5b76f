-- Instead of a release of a plain or fair lock: leave it taken, and let it end by itself, with an owner that
-- is nobody's. With further holds of the old owner the time to live is only raised; the last one sets it.
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  what is left of the lock, in ms
-- ARGV[3+] for each name: channel
-- Returns  one number a name: 2 done, 0 no such hold any more
local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'channel' }
local hold_id, left_ms = ARGV[1], ARGV[2]

-- include: names
-- include: now
-- include: entry
-- include: extend
-- include: publish
-- include: lingering
-- include: line
-- include: mutex_release

local function linger(name)
	local entry = redis.call('HGET', name.holds, hold_id)
	if not entry then
		return 0
	end
	local owner, since_ms, _, token, note = entry_parse(entry)
	local count = tonumber(redis.call('HGET', name.lock, owner))
	-- The first write, and one that a full server allows; those behind it are allowed then too.
	redis.call('HDEL', name.holds, hold_id)
	if not count then
		return 0
	end
	if not lingering_end(owner) then
		local nobody = lingering_owner(owner, now_ms + left_ms)
		redis.call('HINCRBY', name.lock, nobody, 1)
		if count > 1 then
			redis.call('HINCRBY', name.lock, owner, -1)
		else
			redis.call('HDEL', name.lock, owner)
		end
		owner = nobody
	end
	redis.call('HSET', name.holds, hold_id, entry_make(owner, since_ms, left_ms, token, note))
	if redis.call('HLEN', name.lock) > 1 then
		extend(name.lock, left_ms)
		extend(name.holds, left_ms)
	else
		redis.call('PEXPIRE', name.lock, left_ms)
		redis.call('PEXPIRE', name.holds, left_ms)
		-- So that they learn of an earlier end.
		tell_waiters(name)
	end
	return 2
end

local reply = {}
for index, name in ipairs(names) do
	reply[index] = linger(name)
end
return reply
