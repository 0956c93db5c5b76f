-- Break somebody's lock, as Redisson's forceUnlock does (RedissonLock.forceUnlockAsync).
-- KEYS[1]  lock hash
-- KEYS[2]  holds hash
-- ARGV[1]  message that wakes the waiters
-- ARGV[2]  channel
-- ARGV[3]  the owner that must still be the holder, or empty for whoever it is
-- Returns  {1, holder}  broken            {2, holder}  broken, but publishing was refused
--          {0}  nobody holds it           {3, holder}  somebody else holds it; nothing was changed
--          {-1, type}  the key is something else; nothing was changed
local lock, holds = KEYS[1], KEYS[2]
local message, channel, expected_holder = ARGV[1], ARGV[2], ARGV[3]

-- include: refused
-- include: publish

local fields = redis.pcall('HKEYS', lock)
if is_other_type(fields) then
	return { -1, redis.call('TYPE', lock).ok }
elseif is_error(fields) then
	return refused('HKEYS', fields)
end
local holder = fields[1]
if not holder then
	return { 0 }
end
if redis.call('HEXISTS', lock, 'mode') == 1 then
	return { -1, 'read/write lock' }
end
if expected_holder ~= '' and expected_holder ~= holder then
	return { 3, holder }
end
redis.call('DEL', lock, holds)
return publish(channel, message) and { 1, holder } or { 2, holder }
