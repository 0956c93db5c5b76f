-- Release one hold of a read or write lock, for every name. A write lock whose owner has read locks, too, becomes a read
-- lock, and waiting readers are notified. It works on a full server.
-- Redisson RedissonReadLock.unlockInnerAsync, RedissonWriteLock.unlockInnerAsync
-- KEYS     for each name: lock hash, holds hash, ends of our readers
-- ARGV[1]  hold id; with what is to be remembered of the hold, "HOLD_ID TTL_MS KIND END"
-- ARGV[2+] for each name: wake queue, turn, channel, what its timeout keys begin with
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 1
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }
local hold_id = id_of_ending_hold(0, #KEY_FIELDS)

-- As free_lock does. A reader whose hold has expired has lost it.
local function free_only(field)
	if is_writer_field(field) then return free_lock(WAKE_ALL, KEYS[3]) end
	local key = timeout_key({ timeouts = ARGV[#ARGV] }, field, 1)
	local ttl_ms = redis.pcall('PTTL', key)
	if type(ttl_ms) == 'number' and ttl_ms > 0 then return free_lock(WAKE_ONE, KEYS[3], key) end
	return nil
end

local field = only_field(2, ARGV[WAKE_QUEUE_ARG])
local heard = field and free_only(field)
if heard == 0 then return { 2 } end

if heard then return { freed(names[1], heard) } end

return release_all(hold_id, release_readwrite, look_at_readers)
