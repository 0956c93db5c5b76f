-- How the permits of a hold are kept until some time, or released. The script sets hold_id and kept_ms.

-- include: permits_release
-- include: kept
-- include: keep

-- Keep the hold. Delete no key: while the slot of the lock moves to another node, a deleted key cannot be created again.
local function keep(name)
	local hold = find_permits(name, hold_id)
	if not hold then return 0 end
	local is_held = hold.count > 0 and tonumber(hold.end_ms) > now_ms() and has_all_permits(name, hold_id, hold.count)
	if not is_held or name.overwritten or must_be_released(name, hold.field, hold_id) then
		local result = release_permits(name, hold_id)
		return result == 3 and ended(hold) or result
	end
	local end_ms = kept_until(hold.field) or now_ms() + kept_ms
	local owner = kept_until(hold.field) and hold.field or kept_owner(hold.field, end_ms)
	put_kept_hold(name, hold_id, hold, owner, end_ms - now_ms())
	redis.call('HDEL', name.holds, hold.field .. LAST)
	set_permits(name, hold_id, hold.count, end_ms)
	-- Wake a waiter: the permits may now become free earlier than the waiters expect.
	wake_next(name)
	return 2
end

local function keep_or_release(name)
	if kept_ms ~= '0' then return keep(name) end
	return release_permits(name, hold_id)
end
