-- To remove a hold from the holds hash, and the loop over the names of a release.
-- include: names
-- include: read_field
-- include: hold_count
-- include: hold_record
-- include: publish
-- include: replica

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

-- The results of do_one(name) for every name:
-- 2 done, and of a release: the lock is free   1 released, the lock is held on
-- 0 no such hold                               3 the hold had a record, but its owner has the lock no longer
-- or the type of the value that overwrote the lock,
-- or the error that kept the script from notifying the waiters of what was done.
-- Instead of all of them, the error of a replica: what one lacks is not lost.
local function for_each_name(hold_id, do_one)
	local results, lacking = {}, nil
	for index, name in ipairs(names) do
		publish_error = nil
		local result = do_one(name)
		if name.overwritten then
			-- The lock may be overwritten, and its holds hash not: a hold is lost once.
			redis.pcall('HDEL', name.holds, hold_id)
			result = name.overwritten
			lacking = name
		elseif publish_error and (result == 1 or result == 2) then
			result = publish_error
		elseif result == 0 then
			lacking = name
		end
		results[index] = result
	end
	return lacking and replica_error(lacking) or results
end
