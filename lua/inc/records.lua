-- To remove the records of owners that lose all their holds.

-- include: suffix
-- include: record

-- Removes the records of these owners, a set.
local function remove_records(name, owners)
	-- By pcall: a value that a user wrote over the holds hash is no obstacle, it ends with the holds.
	local listed = next(owners) and redis.pcall('HGETALL', name.holds) or {}
	for i = 1, #listed, 2 do
		local owner = hold_record_parse(listed[i + 1])
		if owner and owners[owner] then redis.call('HDEL', name.holds, listed[i], listed[i] .. STOP) end
	end
end
