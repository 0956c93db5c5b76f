-- Wait no longer for permits: release what the last try may have acquired, and leave the wake queue.
-- Redisson none
-- KEYS     for each name: counter, holds hash, ends of our permits, permits
-- ARGV[1]  hold id
-- ARGV[2]  owner; not used, but the other leave scripts need it
-- ARGV[3+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits' }, { 'wake_queue', 'turn', 'channel' }
local hold_id = ARGV[1]

local results = for_each_name(hold_id, function(name)
	local result = release_permits(name, hold_id)
	leave_wake_queue(name, hold_id)
	return result
end)
return results
