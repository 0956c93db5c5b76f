-- The record of a hold.

-- include: error
-- include: clock

-- The record of a hold is a value in the holds hash: "OWNER SINCE_MS END_MS TOKEN HOLDER NOTE".
-- OWNER   has no blank; no owner of Redisson's has one, either
-- SINCE_MS, END_MS   by the server's clock
-- TOKEN   "-": no fencing token was issued. For a semaphore: the number of permits, and their slots (permits.lua)
-- HOLDER NOTE   one text from the client, which scripts call the note and return unchanged. lib/hold.c writes and reads HOLDER:
--         "PURPOSE.KIND.NAMES.BOOT.NAMESPACE.PID.START+"
local function hold_record_parse(record)
	return string.match(record, '^(%S+) (%d+) (%d+) (%S+) (.*)$')
end

local function hold_record_make(owner, since_ms, end_ms, token, note)
	return owner .. ' ' .. since_ms .. ' ' .. digits(end_ms) .. ' ' .. token .. ' ' .. note
end

-- Extend the hold in its record, if it would end within lease_ms.
local function hold_record_extend(holds, hold_id, record, lease_ms)
	local owner, since_ms, end_ms, token, note = hold_record_parse(record)
	local extended = hold_record_make(owner, since_ms, math.max(tonumber(end_ms), now_ms() + lease_ms), token, note)
	if is_error(redis.pcall('HSET', holds, hold_id, extended)) then
		-- HSET may have failed because the memory is full. Run an HDEL that deletes nothing, because no field is ''. Such a
		-- server allows HDEL, and after it every write of this script.
		redis.call('HDEL', holds, '')
		redis.call('HSET', holds, hold_id, extended)
	end
end
