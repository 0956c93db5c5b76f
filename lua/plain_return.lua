-- Release a plain lock, which another server or slot did not grant, and keep each name for the caller, which goes on
-- waiting.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  owner; not used, but the other leave scripts need it
-- ARGV[3]  since when it waits
-- ARGV[4]  for how long each name is kept for the caller, in ms
-- ARGV[5+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 4
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }
local hold_id, since_us, kept_ms = ARGV[1], ARGV[3], ARGV[4]

for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
local results = release_all(hold_id, release_mutex)
keep_all(since_us, kept_ms)
return results
