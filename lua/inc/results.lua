-- The reply of a release: one result for each name.

-- include: suffix
-- include: value
-- include: names
-- include: publish

-- Call do_one(name) for each name, and return the results:
-- 2   done; of a release: the lock is free
-- 1   released, but the lock is still held by another hold
-- 0   no such hold
-- 3   the hold had a record, but its owner is not in the lock any more
-- a type   a user has overwritten the lock with a value of this type
-- an error   done, but the waiters could not be notified
-- Instead of all results, return the error of a replica if a name has no such hold: a hold that a replica lacks is not lost.
local function for_each_name(hold_id, do_one)
	local results, lacking = {}, nil
	for index, name in ipairs(names) do
		publish_error = nil
		local result = do_one(name)
		-- Report a lost hold once. Its record may still exist: a user may have overwritten the lock, but not the holds hash.
		if name.overwritten then redis.pcall('HDEL', name.holds, hold_id, hold_id .. STOP) end
		if name.overwritten or result == 0 then lacking = name end
		results[index] = name.overwritten or publish_error and (result == 1 or result == 2) and publish_error or result
	end
	return lacking and replica_error(lacking) or results
end
