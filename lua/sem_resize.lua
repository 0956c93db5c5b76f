-- Set how many permits a semaphore has in all. Held permits stay held, so the number of free permits can fall below 0.
-- Redisson RedissonSemaphore.addPermitsAsync; but the argument is the number in all
-- KEYS     counter, holds hash, ends of our permits, permits, remembered total
-- ARGV[1]  the number of permits in all
-- ARGV[2+] wake queue, turn, channel
-- Returns  {1, the number before; -1: there was no semaphore}
--          {-1, type}  the key is no semaphore; nothing was changed

local FIXED_ARGS = 1
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits', 'remembered' }, { 'wake_queue', 'turn', 'channel' }
local total = tonumber(ARGV[1])

-- include: names
-- include: value
-- include: semaphore
-- include: notify_permits

local name = names[1]
local key_type, err = check_permits(name)
if key_type or err then return replica_error(name) or err or { -1, key_type } end
local was_there = name.free
count_permits(name, total)
local had = was_there and math.max(name.total, 0) or -1
if name.total ~= total then
	local more = total - name.total
	name.free, name.more = redis.call('INCRBY', name.lock, more), math.max(name.more, 0) + math.max(more, 0)
	redis.call('SET', name.remembered, digits(total), 'PX', REMEMBERED_MS)
end
if name.more > 0 then notify_of_permits(name, name.free, name.more) end
return { 1, had }
