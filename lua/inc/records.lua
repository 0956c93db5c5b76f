-- Delete the records of owners that lose all their holds.

-- include: suffix
-- include: record

-- Delete the records of all owners in this set.
local function remove_records(name, owners)
	-- Use pcall: if a user has overwritten the holds hash with another type, HGETALL fails, but there is no record to delete. The
	-- key is deleted when the lock is.
	local listed = next(owners) and redis.pcall('HGETALL', name.holds) or {}
	for i = 1, #listed, 2 do
		local owner = hold_record_parse(listed[i + 1])
		if owner and owners[owner] then redis.call('HDEL', name.holds, listed[i], listed[i] .. STOP) end
	end
end
