-- To renew the record of a hold.
-- include: now
-- include: denied
-- include: hold_record
-- include: hold_record_make

-- The hold lasts for lease_ms at least.
local function hold_record_extend(holds, hold_id, record, lease_ms)
	local owner, since_ms, end_ms, token, note = hold_record_parse(record)
	local extended = hold_record_make(owner, since_ms, math.max(tonumber(end_ms), now_ms() + lease_ms), token, note)
	if is_error(redis.pcall('HSET', holds, hold_id, extended)) then
		-- A full server allows this, and what comes after a write.
		redis.call('HDEL', holds, '')
		redis.call('HSET', holds, hold_id, extended)
	end
end
