-- Keep the permits of a hold until some time, instead of its release: they get an owner that no process has.
-- Redisson none
-- KEYS     for each name: counter, holds hash, ends of our permits, permits
-- ARGV[1]  hold id; with what is to be remembered of the hold, "HOLD_ID TTL_MS KIND END"
-- ARGV[2]  how long to keep them, in ms
-- ARGV[3+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits' }, { 'wake_queue', 'turn', 'channel' }
local left_ms = ARGV[2]
local hold_id = id_of_ending_hold(tonumber(left_ms), #KEY_FIELDS)

local function keep(name)
	local hold = remove_permits(name, hold_id)
	if not hold then
		return 0
	elseif hold.is_lost or name.overwritten then
		free_permits(name, hold)
		return 3
	elseif hold.is_told then
		free_permits(name, hold)
		return 2
	end
	local owner = hold.field
	local end_ms = kept_until(owner) or now_ms() + left_ms
	if not kept_until(owner) then owner = kept_owner(owner, end_ms) end
	set_permits(name, hold_id, hold.count, end_ms)
	put_kept_hold(name, hold_id, hold, owner, end_ms - now_ms())
	-- The permit may be free earlier than the waiters know.
	wake_next(name)
	return 2
end

return for_each_name(hold_id, keep)
