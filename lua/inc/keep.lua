-- To keep a hold until some time, instead of releasing it.

-- include: suffix
-- include: clock
-- include: ttl
-- include: record

-- Whether a hold was asked to stop. It is not kept, even if it learned of that too late: the sender waits for the lock to be free.
local function is_stop_requested(name, hold_id) return redis.call('HGET', name.holds, hold_id .. STOP) ~= false end

-- Puts the hold's record of that owner, for left_ms, in the place of its record.
local function put_kept_hold(name, hold_id, hold, owner, left_ms)
	-- A full server allows this, and what comes after a write.
	redis.call('HDEL', name.holds, '')
	write_for(math.max(left_ms, 1), 'HSET', name.holds, hold_id,
		hold_record_make(owner, hold.since_ms, now_ms() + left_ms, hold.token, hold.note))
end
