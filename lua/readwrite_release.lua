-- Release one hold of a read or write lock, for every name (RedissonReadLock.unlockInnerAsync,
-- RedissonWriteLock.unlockInnerAsync). A write lock whose owner has read locks, too, becomes a read lock, and waiting
-- readers are notified. It works on a full server.
-- KEYS     for each name: lock hash, holds hash, ends of our readers
-- ARGV[1]  hold id
-- ARGV[2+] for each name: wake queue, turn, channel, what its time-out keys begin with
-- Returns  one number a name, see inc/remove_hold.lua
local FIXED_ARGS = 1
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }
local hold_id = ARGV[1]

-- include: names
-- include: release_all
-- include: readwrite_release

return release_all(hold_id, release_one)
