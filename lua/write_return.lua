-- Release a read or write lock, which another server or slot did not grant, and keep each name for the caller, which goes on
-- waiting.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3]  since when it waits
-- ARGV[4]  for how long each name is kept for the caller, in ms
-- ARGV[5+] for each name: wake queue, turn, channel, what its timeout keys begin with
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 4
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'writer', 'ends' }, { 'wake_queue', 'turn', 'channel', 'timeouts' }
local hold_id, owner, since_us, kept_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

for _, name in ipairs(names) do leave_wake_queue(name, hold_id) end
local results = release_all(hold_id, release_readwrite, look_at_readers)
local err = end_writers_turn(owner)
if err then return err end
keep_all(since_us, kept_ms)
return results
