-- Keep a hold of a plain or fair lock until some time, instead of its release: it gets an owner that no process has.
-- While another owner holds the lock, its TTL becomes that of the longest hold; the last release sets it.
-- Redisson none
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id; with what is to be remembered of the hold, "HOLD_ID TTL_MS KIND END"
-- ARGV[2]  how long to keep it, in ms
-- ARGV[3+] for each name: wake queue, turn, channel
-- Returns  one number a name, see inc/names.lua

local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'wake_queue', 'turn', 'channel' }
local left_ms = ARGV[2]
local hold_id = id_of_ending_hold(tonumber(left_ms), #KEY_FIELDS)

local function keep(name)
	local hold = remove_hold(name, hold_id)
	if not hold or not hold.count then return 0 end
	-- Also when it learned of the request too late: its sender waits for the lock to be free.
	if hold.is_told then return release_mutex(name, hold.field, hold.count) end
	local owner = hold.field
	if not kept_until(owner) then
		owner = kept_owner(hold.field, now_ms() + left_ms)
		redis.call('HINCRBY', name.lock, owner, 1)
		remove_one(name, hold.field, hold.count)
	end
	put_kept_hold(name, hold_id, hold, owner, left_ms)
	extend(name.lock, left_ms)
	leave_to_others(name)
	return 2
end

return for_each_name(hold_id, keep)
