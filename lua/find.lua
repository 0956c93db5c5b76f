-- The most recent hold of an owner, of whatever kind. Reads only.
-- KEYS[1]  lock hash
-- KEYS[2]  holds hash
-- ARGV[1]  owner
-- Returns  {hold id, ttl in ms, kind}, or nil when the owner does not hold the lock by one of ours; kind is
--          plain (a fair one is given back alike), read or write
local lock, holds, owner = KEYS[1], KEYS[2], ARGV[1]

-- include: entry

local is_readwrite = redis.call('HEXISTS', lock, 'mode') == 1
local kinds = { [owner] = is_readwrite and 'read' or 'plain' }
if is_readwrite then
	-- wire: RedissonWriteLock.getLockName
	kinds[owner .. ':write'] = 'write'
end

local listed = redis.call('HGETALL', holds)
local latest_id, latest_ms, latest_kind
for i = 1, #listed, 2 do
	local field, since_ms = entry_parse(listed[i + 1])
	-- Same length for centuries, so text compares as numbers; ties go to one of the two.
	if kinds[field] and redis.call('HEXISTS', lock, field) == 1
		and (not latest_ms or since_ms >= latest_ms) then
		latest_id, latest_ms, latest_kind = listed[i], since_ms, kinds[field]
	end
end
if not latest_id then
	return nil
end
return { latest_id, redis.call('PTTL', lock), latest_kind }
