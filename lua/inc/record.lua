-- The record of a hold.

-- include: error
-- include: clock

-- The record of one hold, a value in the holds hash: "OWNER SINCE_MS END_MS TOKEN HOLDER NOTE". An owner, Redisson's too,
-- has no blank in it. Both times are the server's. TOKEN is "-" when none was issued; of a semaphore it is how many
-- permits the hold has, and which slots: inc/slots.lua. The client sends HOLDER and NOTE as one text, which scripts call
-- the note, and return as it is. lib/hold.c writes and reads HOLDER: "PURPOSE.NAMES.BOOT.NAMESPACE.PID.START+".
local function hold_record_parse(record)
	return string.match(record, '^(%S+) (%d+) (%d+) (%S+) (.*)$')
end

local function hold_record_make(owner, since_ms, end_ms, token, note)
	return owner .. ' ' .. since_ms .. ' ' .. digits(end_ms) .. ' ' .. token .. ' ' .. note
end

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
