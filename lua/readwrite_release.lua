-- Release one hold of a read or write lock, for every name, or keep it until some time, as plain_release.lua does. If the owner
-- of a write lock has read locks as well, the lock becomes a read lock, and waiting readers are notified. A release works on a
-- server whose memory is full.
-- Redisson RedissonReadLock.unlockInnerAsync, RedissonWriteLock.unlockInnerAsync
-- KEYS     for each name: lock hash, holds hash. No other key, for the reason in plain_release.lua: a write lock, for example,
--          has no ends of readers
-- ARGV[1]  hold id; with --remember "HOLD_ID TTL_MS KIND END", see inc/last.lua
-- ARGV[2]  how long to keep the hold, in ms; 0: release it
-- ARGV[3+] for each name: ends of our readers, wake queue, turn, channel, the start of its timeout keys
-- Returns  one result for each name: see inc/results.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds' }, { 'ends', 'wake_queue', 'turn', 'channel', 'timeouts' }
local WAKE_QUEUE_ARG, CHANNEL_ARG, ends = FIXED_ARGS + 2, FIXED_ARGS + 4, ARGV[FIXED_ARGS + 1]
local hold_id, kept_ms = string.match(ARGV[1], '^%S+'), ARGV[2]

-- include: fast_release
-- include: reader_holds

-- Call free_lock for a read or write hold, and return its result. If the hold of a reader has expired, return nil, so that the
-- slow path reports a lost lock.
local function free_only_hold(field)
	if is_writer_field(field) then return free_lock(WAKE_ALL, ends) end
	local key = timeout_key({ timeouts = ARGV[#ARGV] }, field, 1)
	local ttl_ms = redis.pcall('PTTL', key)
	if type(ttl_ms) == 'number' and ttl_ms > 0 then return free_lock(WAKE_ONE, ends, key) end
	return nil
end

local field = only_field(2, ARGV[WAKE_QUEUE_ARG])
local heard = field and free_only_hold(field)
if heard == 0 then return { 2 } end

-- include: names

if heard then
	-- include: fast_released
	return { after_free_lock(names[1], heard) }
end

-- include: readwrite_release
-- include: readwrite_keep
-- include: last

remember_holds(ARGV[1], kept_ms)
return release_all(hold_id, release_readwrite, measure_readers, kept_ms ~= '0' and keep)
