-- Release one hold of a plain or fair lock, for every name, or keep the hold until some time. A kept hold gets an owner that no
-- process has. When the last other hold is released, the TTL of the lock becomes the remaining time of the kept hold.
-- A release must succeed on a server whose memory is full. So its first write is a deletion, which such a server allows: after
-- that, it lets the script write more.
-- Redisson RedissonLock.unlockInnerAsync, RedissonFairLock.unlockInnerAsync
-- KEYS     for each name: lock hash, holds hash. No other key, since others may be missing: while the slot of the lock moves to
--          another node of a cluster, a request with a missing key is refused
-- ARGV[1]  hold id; with --remember "HOLD_ID TTL_MS KIND END", see inc/last.lua
-- ARGV[2]  how long to keep the hold, in ms; 0: release it
-- ARGV[3+] for each name: Redisson's queue and deadlines, our waiters, wake queue, turn, channel
-- Returns  one result for each name: see inc/results.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds' }, { 'queue', 'deadlines', 'waiters', 'wake_queue', 'turn', 'channel' }
local WAKE_QUEUE_ARG, CHANNEL_ARG = FIXED_ARGS + 4, FIXED_ARGS + 6
local hold_id, kept_ms = string.match(ARGV[1], '^%S+'), ARGV[2]

-- include: fast_release

local field, has_waiter = only_field(1, ARGV[FIXED_ARGS + 1])
local heard = field and free_lock(WAKE_ONE)
if heard == 0 and not has_waiter then return { 2 } end

-- include: names

if heard then
	-- include: fast_released
	return { after_free_lock(names[1], heard) }
end

-- include: mutex_release
-- include: mutex_keep
-- include: last

remember_holds(ARGV[1], kept_ms)
return release_all(hold_id, release_mutex, nil, kept_ms ~= '0' and keep)
