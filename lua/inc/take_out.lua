-- Takes a hold out of the list: what stood there, and count, how many holds its owner has on the lock. nil when
-- it isn't there; count is nil when the lock is not its owner's any more, or what stood there is no hold. Needs: names,
-- overwritten, fields, entry, publish.
local function take_out(name, hold_id)
	local entry = redis.call('HGET', name.holds, hold_id)
	if not entry then
		return nil
	end
	local hold = {}
	hold.field, hold.since_ms, hold.end_ms, hold.token, hold.note = entry_parse(entry)
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
		untold = nil
		local key_type = overwritten(name)
		if key_type then
			-- Both may be; it is lost once.
			redis.pcall('HDEL', name.holds, hold_id)
		end
		local result = key_type or do_one(name)
		local is_done = result == 1 or result == 2
		results[index] = is_done and untold or result
	end
	return results
end

-- Gives a hold back by give_one(name, field, count, note), on every name.
local function release_all(hold_id, give_one)
	return for_each_name(hold_id, function(name)
		local hold = take_out(name, hold_id)
		if not hold then
			return 0
		end
		return hold.count and give_one(name, hold.field, hold.count, hold.note) or 3
	end)
end

-- Puts it back in the list with an owner that is nobody's, who has it for left_ms.
local function put_lingering(name, hold_id, hold, nobody, left_ms)
	redis.call('HSET', name.holds, hold_id,
		entry_make(nobody, hold.since_ms, now_ms + left_ms, hold.token, hold.note))
end
