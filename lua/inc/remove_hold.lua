-- To remove a hold from the holds hash.
-- include: read_field
-- include: hold_count
-- include: hold_record

-- What its record said, and count: how many holds its owner has on the lock. nil when there is no such hold; then
-- name.overwritten may be set. count is nil when its owner has the lock no longer, or the record is none.
local function remove_hold(name, hold_id)
	local record = read_field(name, name.holds, hold_id)
	if not record then
		return nil
	end
	local hold, count = {}, nil
	hold.field, hold.since_ms, hold.end_ms, hold.token, hold.note = hold_record_parse(record)
	if hold.field then
		count = read_field(name, name.lock, hold.field)
	end
	if name.overwritten then
		return nil
	end
	hold.count = count and hold_count(count)
	-- The first write, and one that a full server allows; it then allows those after it, too.
	redis.call('HDEL', name.holds, hold_id)
	return hold
end
