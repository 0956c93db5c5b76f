-- To remove the permits of a hold from the sets.
-- include: now
-- include: hold_record
-- include: read_field
-- include: permit_id

local function ids_of(command, key, hold_id, count)
	local words = { command, key }
	for number = 1, count do
		words[#words + 1] = permit_id(hold_id, number)
	end
	return words
end

-- The hold, which is removed. count: its permits by its record; removed: how many of them were there; is_lost: not all,
-- or its lease has ended.
-- nil when there is no such hold; then name.overwritten may be set.
local function remove_permits(name, hold_id)
	local record = read_field(name, name.holds, hold_id)
	if not record then
		return nil
	end
	local hold = {}
	hold.field, hold.since_ms, hold.end_ms, hold.token, hold.note = hold_record_parse(record)
	hold.count = tonumber(hold.token) or 0
	-- The first write, and one that a full server allows; it then allows those after it, too.
	redis.call('HDEL', name.holds, hold_id)
	if hold.count == 0 then
		return nil
	end
	-- A user may have overwritten it: no obstacle.
	redis.pcall(unpack(ids_of('ZREM', name.ends, hold_id, hold.count)))
	hold.removed = redis.call(unpack(ids_of('ZREM', name.permits, hold_id, hold.count)))
	hold.is_lost = hold.removed < hold.count or tonumber(hold.end_ms) <= now_ms()
	return hold
end
