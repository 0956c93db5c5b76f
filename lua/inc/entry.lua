-- The value of one hold in the holds hash: "OWNER SINCE_MS END_MS TOKEN NOTE". Owners have no blank in
-- them, ours or Redisson's; both times are the server's; TOKEN is "-" when none was drawn; the note is the rest, and
-- may be empty. Needs, but to parse one: now.
local function entry_parse(entry)
	return string.match(entry, '^(%S+) (%d+) (%d+) (%S+) (.*)$')
end

local function entry_make(owner, since_ms, end_ms, token, note)
	return owner .. ' ' .. since_ms .. ' ' .. digits(end_ms) .. ' ' .. token .. ' ' .. note
end

-- The hold lasts so long at least. On a full server what stands behind a write is allowed.
local function entry_extend(holds, hold_id, entry, lease_ms)
	local owner, since_ms, end_ms, token, note = entry_parse(entry)
	redis.call('HDEL', holds, '')
	redis.call('HSET', holds, hold_id,
		entry_make(owner, since_ms, math.max(tonumber(end_ms), now_ms + lease_ms), token, note))
end
