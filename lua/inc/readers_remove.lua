-- To take readers of ours out of the lock.
-- include: hold_count
-- include: hold_record
-- include: readers

-- How long that reader of ours lasts; 0 for one that is in the lock no more.
local function our_reader_ttl_ms(name, owner)
	local count = hold_count(redis.call('HGET', name.lock, owner))
	return count and reader_ttl_ms(name, owner, count) or 0
end

-- Takes these owners, which is a set, out of the lock, with all of their holds.
local function remove_readers(name, owners)
	if next(owners) == nil then
		return
	end
	for owner in pairs(owners) do
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
	end
	-- What overwrote the holds is no obstacle: it ends with them.
	local listed = redis.pcall('HGETALL', name.holds)
	for i = 1, #listed, 2 do
		if owners[hold_record_parse(listed[i + 1]) or ''] then
			redis.call('HDEL', name.holds, listed[i])
		end
	end
end
