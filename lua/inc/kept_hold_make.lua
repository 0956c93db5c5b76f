-- To keep a lock until some time instead of a release: its hold lingers. What knows such holds is lingering.lua.
-- include: now
-- include: hold_record_make
-- include: kept_hold

local function kept_owner(owner, end_ms)
	return owner .. KEPT .. digits(end_ms)
end

-- Puts it back in the list with an owner that is nobody's, who has it for left_ms.
local function put_kept_hold(name, hold_id, hold, nobody, left_ms)
	redis.call('HSET', name.holds, hold_id,
		hold_record_make(nobody, hold.since_ms, now_ms + left_ms, hold.token, hold.note))
end
