-- Takes a hold out of the list: what stood there, and count, how many holds its owner has on the lock. nil when
-- it isn't there; count is nil when the lock is not its owner's any more, or what stood there is no hold.
-- include: names
-- include: overwritten
-- include: hold_count
-- include: hold_record
-- include: publish

local function remove_hold(name, hold_id)
	local entry = redis.call('HGET', name.holds, hold_id)
	if not entry then
		return nil
	end
	local hold = {}
	hold.field, hold.since_ms, hold.end_ms, hold.token, hold.note = hold_record_parse(entry)
	hold.count = hold.field and hold_count(redis.call('HGET', name.lock, hold.field))
	-- The first write, and one that a full server allows; those behind it are allowed then too.
	redis.call('HDEL', name.holds, hold_id)
	return hold
end

-- The results of do_one(name) for every name:
-- 2 done, and of a release: the lock is free   1 released, the lock is held on
-- 0 no such hold                               3 the hold was listed, but the lock is not its owner's any more
-- or the type of what its lock was overwritten with,
-- or the error why somebody could not be told of what was done
local function for_each_name(hold_id, do_one)
	local results = {}
	for index, name in ipairs(names) do
		publish_error = nil
		local key_type = overwritten(name)
		if key_type then
			-- Both may be; it is lost once.
			redis.pcall('HDEL', name.holds, hold_id)
		end
		local result = key_type or do_one(name)
		local is_done = result == 1 or result == 2
		results[index] = is_done and publish_error or result
	end
	return results
end
