-- To remove readers of ours from the lock.
-- include: hold_count
-- include: hold_record
-- include: readers

-- How long that reader lasts; 0 when it is in the lock no longer.
local function our_reader_ttl_ms(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	if not count then
		return 0
	end
	return reader_ttl_ms(name, owner, count)
end

-- owners is a set: each of them loses all its holds.
local function remove_readers(name, owners)
	if next(owners) == nil then
		return
	end
	for owner in pairs(owners) do
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
	end
	-- By pcall: a value that a user wrote over the holds hash is no obstacle, it ends with the holds.
	local listed = redis.pcall('HGETALL', name.holds)
	for i = 1, #listed, 2 do
		local owner = hold_record_parse(listed[i + 1])
		if owner and owners[owner] then
			redis.call('HDEL', name.holds, listed[i])
		end
	end
end
