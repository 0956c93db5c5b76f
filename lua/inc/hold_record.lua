-- The record of one hold, a value in the holds hash: "OWNER SINCE_MS END_MS TOKEN NOTE". An owner, Redisson's too,
-- has no blank in it. Both times are the server's. TOKEN is "-" when none was issued; of a semaphore it is how many
-- permits the hold has. The note is the rest, and may be empty.
local function hold_record_parse(record)
	return string.match(record, '^(%S+) (%d+) (%d+) (%S+) (.*)$')
end
