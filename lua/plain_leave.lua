-- Wait no longer for a plain lock: release what the last try may have acquired, and leave the wake queue.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner; not used, but the other leave scripts need it
-- ARGV[3]  since when it waits; or empty
-- ARGV[4]  for how long each name is kept for the caller, in ms, which goes on waiting: another server or slot did not grant
--          the lock; 0: it waits no longer
-- ARGV[5+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 4
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }
local hold_id, since_us, kept_ms = ARGV[1], ARGV[3], ARGV[4]

for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
local results = release_all(hold_id, release_mutex)
keep_all(since_us, kept_ms)
return results
