-- The most recent hold of an owner. Reads only.
-- KEYS[1]  lock hash
-- KEYS[2]  holds hash
-- ARGV[1]  owner
-- Returns  {hold id, ttl in ms}, or nil when the owner does not hold the lock by one of ours
local lock, holds, owner = KEYS[1], KEYS[2], ARGV[1]

-- include: entry

if redis.call('HEXISTS', lock, owner) == 0 then
	return nil
end
local listed = redis.call('HGETALL', holds)
local latest_id, latest_ms
for i = 1, #listed, 2 do
	local entry_owner, since_ms = entry_parse(listed[i + 1])
	-- Same length for centuries, so text compares as numbers; ties go to one of the two.
	if entry_owner == owner and (not latest_ms or since_ms >= latest_ms) then
		latest_id, latest_ms = listed[i], since_ms
	end
end
if not latest_id then
	return nil
end
return { latest_id, redis.call('PTTL', lock) }
