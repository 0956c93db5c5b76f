-- One result for each name of a release.

-- include: suffix
-- include: value
-- include: names
-- include: publish

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
		-- The lock may be overwritten, and its holds hash not: a hold is lost once.
		if name.overwritten then redis.pcall('HDEL', name.holds, hold_id, hold_id .. STOP) end
		if name.overwritten or result == 0 then lacking = name end
		results[index] = name.overwritten or publish_error and (result == 1 or result == 2) and publish_error or result
	end
	return lacking and replica_error(lacking) or results
end
