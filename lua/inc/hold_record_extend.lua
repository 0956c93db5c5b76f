-- To renew the record of a hold.
-- include: now
-- include: hold_record
-- include: hold_record_make

-- The hold lasts so long at least. On a full server what stands behind a write is allowed.
local function hold_record_extend(holds, hold_id, entry, lease_ms)
	local owner, since_ms, end_ms, token, note = hold_record_parse(entry)
	redis.call('HDEL', holds, '')
	redis.call('HSET', holds, hold_id,
		hold_record_make(owner, since_ms, math.max(tonumber(end_ms), now_ms + lease_ms), token, note))
end
