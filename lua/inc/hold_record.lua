-- The record of one hold, its value in the holds hash: "OWNER SINCE_MS END_MS TOKEN NOTE". Owners have no
-- blank in them, ours or Redisson's; both times are the server's; TOKEN is "-" when none was drawn; the note is the
-- rest, and may be empty.
local function hold_record_parse(entry)
	return string.match(entry, '^(%S+) (%d+) (%d+) (%S+) (.*)$')
end
