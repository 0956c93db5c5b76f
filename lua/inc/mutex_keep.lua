-- How the hold of a plain or fair lock is kept until some time. The script sets hold_id and kept_ms.

-- include: mutex_release
-- include: kept
-- include: keep

local function keep(name, field, count, hold)
	if must_be_released(name, field, hold_id) then return false end
	local is_new = not kept_until(field)
	local owner = is_new and kept_owner(field, now_ms() + kept_ms) or field
	put_kept_hold(name, hold_id, hold, owner, kept_ms)
	if is_new then
		redis.call('HINCRBY', name.lock, owner, 1)
		remove_one(name, field, count)
	end
	extend(name.lock, kept_ms)
	leave_to_rest(name)
	return true
end
