-- How a release keeps a hold until some time.

-- include: suffix
-- include: clock
-- include: ttl
-- include: record

-- Whether this hold was asked to stop. Such a hold is released rather than kept, because the sender of the request waits until
-- the lock is free. The holder may have learned of the request only after it has sent this release.
local function is_stop_requested(name, hold_id) return redis.call('HGET', name.holds, hold_id .. STOP) ~= false end

-- Replace the hold's record by that of a kept hold of this owner, for left_ms.
local function put_kept_hold(name, hold_id, hold, owner, left_ms)
	-- Run an HDEL first that deletes nothing, because no field is ''. A server whose memory is full allows HDEL, and after it
	-- every write of this script. Without the HDEL it would refuse a write that needs memory.
	redis.call('HDEL', name.holds, '')
	write_for(math.max(left_ms, 1), 'HSET', name.holds, hold_id,
		hold_record_make(owner, hold.since_ms, now_ms() + left_ms, hold.token, hold.note))
end
