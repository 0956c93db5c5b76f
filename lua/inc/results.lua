-- The reply of a release: one result for each name.

-- include: suffix
-- include: value
-- include: names
-- include: publish

-- Call do_one(name) for each name, and return the results:
-- 2   the hold is kept for --at-least; or it was released, and the lock is free
-- 1   the hold was released, but another hold keeps the lock
-- 0   there is no such hold; or an earlier release kept it for --at-least, and that time has passed
-- 3   the hold was lost: it had a record, but its owner is not in the lock any more, or its lease has ended, or a permit is
-- missing
-- a type   a user has overwritten the lock with a value of this type
-- an error   as 1 or 2, but the waiters could not be notified
-- If the server is a replica and a name has no such hold, return only the error of a replica: a hold that a replica lacks is not
-- lost.
local function for_each_name(hold_id, do_one)
	local results, lacking = {}, nil
	for index, name in ipairs(names) do
		publish_error = nil
		local result = do_one(name)
		-- Delete the record, so that the lost hold is reported only once. The record may still exist: a user may have overwritten
		-- the lock, but not the holds hash.
		if name.overwritten then redis.pcall('HDEL', name.holds, hold_id, hold_id .. STOP) end
		if name.overwritten or result == 0 then lacking = name end
		results[index] = name.overwritten or publish_error and (result == 1 or result == 2) and publish_error or result
	end
	return lacking and replica_error(lacking) or results
end
