-- How a release keeps a hold until some time.

-- include: suffix
-- include: clock
-- include: ttl
-- include: record
-- include: kept

-- Whether this hold of an owner must be released rather than kept, for one of two reasons. The hold was asked to stop: the sender
-- of the request waits until the lock is free, and the holder may have learned of the request only after it has sent this
-- release. Or an earlier request has kept the hold, and its time is over.
local function must_be_released(name, owner, hold_id)
	local end_ms = kept_until(owner)
	return end_ms and end_ms <= now_ms() or redis.call('HGET', name.holds, hold_id .. STOP) ~= false
end

-- Replace the hold's record by that of a kept hold of this owner, for left_ms.
local function put_kept_hold(name, hold_id, hold, owner, left_ms)
	-- Run an HDEL first that deletes nothing, because no field is ''. A server whose memory is full allows HDEL, and after it
	-- every write of this script. Without the HDEL it would refuse a write that needs memory.
	redis.call('HDEL', name.holds, '')
	write_for(math.max(left_ms, 1), 'HSET', name.holds, hold_id,
		hold_record_make(owner, hold.since_ms, now_ms() + left_ms, hold.token, hold.note))
end
