-- To keep a hold until some time, as kept_hold.lua reads it.
-- include: now
-- include: hold_record_make
-- include: kept_hold

local function kept_owner(owner, end_ms)
	return owner .. KEPT .. digits(end_ms)
end

-- Puts the record of a removed hold back, now of that owner, for left_ms.
local function put_kept_hold(name, hold_id, hold, owner, left_ms)
	redis.call('HSET', name.holds, hold_id,
		hold_record_make(owner, hold.since_ms, now_ms() + left_ms, hold.token, hold.note))
end
