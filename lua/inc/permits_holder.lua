-- Which holder waiters for a permit are shown, and when they may try.
-- include: now
-- include: hold_record
-- include: permits
-- include: no_deadline

-- When the next permit may be reclaimed, from now; -1: there is none that ends.
local function permits_ttl_ms(name)
	local ours, all = redis.call('ZRANGE', name.ends, 0, 0, 'WITHSCORES'), redis.call('ZRANGE', name.permits, 0, 0, 'WITHSCORES')
	local end_ms = tonumber(ours[2] or NO_DEADLINE_MS)
	-- If that deadline is one of our permits', this is no earlier than its end, and changes nothing.
	end_ms = math.min(end_ms, tonumber(all[2] or NO_DEADLINE_MS) + BEHIND_MS)
	return end_ms < NO_DEADLINE_MS and math.max(end_ms - now_ms(), 0) or -1
end

-- The one whose permit ends first: its owner, its note, and for how long it has held the permit, in ms; -1: not known. An
-- empty owner: no permit is held, and there are too few.
local function permit_holder(name)
	local id = redis.call('ZRANGE', name.ends, 0, 0)[1]
	local record = id and redis.call('HGET', name.holds, string.match(id, '^%x+') or '')
	local owner, since_ms, _, _, owner_note = hold_record_parse(record or '')
	if owner then
		return owner, owner_note, math.max(now_ms() - since_ms, 0)
	end
	return name.free < name.total and 'a client without a record' or '', '', -1
end
