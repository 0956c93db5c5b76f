-- The value of one hold in the holds hash: "OWNER SINCE_MS LEASE_MS TOKEN NOTE". Owners have no blank in
-- them, ours or Redisson's; TOKEN is "-" when none was drawn; the note is the rest, and may be empty.
local function entry_parse(entry)
	return string.match(entry, '^(%S+) (%d+) (%d+) (%S+) (.*)$')
end

local function entry_make(owner, since_ms, lease_ms, token, note)
	return owner .. ' ' .. since_ms .. ' ' .. lease_ms .. ' ' .. token .. ' ' .. note
end
