-- Instead of a release of a plain or fair lock: leave it taken, and let it end by itself, with an owner that
-- is nobody's. With further holds of the old owner the time to live is only raised; the last one sets it.
-- KEYS     for each name: lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  hold id
-- ARGV[2]  what is left of the lock, in ms
-- ARGV[3+] for each name: channel
-- Returns  one number a name, see inc/remove_hold.lua
local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'queue', 'deadlines', 'waiters' }, { 'channel' }
local hold_id, left_ms = ARGV[1], ARGV[2]

-- include: names
-- include: now
-- include: ttl_extend
-- include: kept_hold
-- include: kept_hold_make
-- include: remove_hold
-- include: mutex_notify
-- include: mutex_settle

local function keep(name)
	local hold = remove_hold(name, hold_id)
	if not hold or not hold.count then
		return 0
	end
	local nobody = hold.field
	if not kept_until(nobody) then
		nobody = kept_owner(hold.field, now_ms + left_ms)
		redis.call('HINCRBY', name.lock, nobody, 1)
		if hold.count > 1 then
			redis.call('HINCRBY', name.lock, hold.field, -1)
		else
			redis.call('HDEL', name.lock, hold.field)
		end
	end
	put_kept_hold(name, hold_id, hold, nobody, left_ms)
	if has_owner(name) then
		extend(name.lock, left_ms)
		extend(name.holds, left_ms)
		limit_to_longest_hold(name)
	elseif leave_to_kept_holds(name) then
		-- So that they learn of an earlier end.
		notify_waiters(name)
	end
	return 2
end

return for_each_name(hold_id, keep)
