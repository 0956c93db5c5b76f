-- Wait no longer for a read or write lock: release what the last try may have acquired, and let the readers in that wait for
-- the writer's turn.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV[1]  hold id
-- ARGV[2]  owner
-- ARGV[3], ARGV[4] as those of plain_leave.lua
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
