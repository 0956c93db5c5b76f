-- To write the record of a hold, as hold_record.lua parses it.
-- include: now

local function hold_record_make(owner, since_ms, end_ms, token, note)
	return owner .. ' ' .. since_ms .. ' ' .. digits(end_ms) .. ' ' .. token .. ' ' .. note
end
