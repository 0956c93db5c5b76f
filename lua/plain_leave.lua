-- Wait no longer for a plain lock: release what the last try may have acquired, and leave the wake queue.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner; not used, but the other leave scripts need it
-- ARGV[3+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }
local hold_id = ARGV[1]

for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
local results = release_all(hold_id, release_mutex)
return results
