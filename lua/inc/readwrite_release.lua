-- To release one hold of a read or write lock.
-- include: now
-- include: hold_ttl
-- include: readers
-- include: writer_field
-- include: readers_expired
-- include: readwrite_settle

-- Which of a reader's timeout keys belongs to which hold is not known: the holds that it keeps all last as long as the
-- longest of them.
local function release_read(name, owner, count)
	local left_ms = reader_ttl_ms(name, owner, count)
	if left_ms == 0 then
		remove_if_expired(name, owner)
		settle(name, false)
		return 3
	end
	-- wire: the last key is deleted, whichever hold is released.
	redis.call('DEL', timeout_key(name, owner, count))
	if count == 1 then
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
		return settle(name, false)
	end
	redis.call('HINCRBY', name.lock, owner, -1)
	local longest_ms = longest_hold_ms(name, { owner })
	if longest_ms and longest_ms > 0 then
		left_ms = math.min(left_ms, longest_ms)
	end
	for number = 1, count - 1 do
		redis.call('SET', timeout_key(name, owner, number), 1, 'PX', digits(left_ms))
	end
	redis.call('ZADD', name.ends, 'XX', digits(now_ms() + left_ms), owner)
	return settle(name, false)
end

local function release_write(name, field, count)
	if count == 1 then
		redis.call('HDEL', name.lock, field)
	else
		redis.call('HINCRBY', name.lock, field, -1)
	end
	return settle(name, true)
end

local function release_one(name, field, count)
	remove_expired(name)
	if is_writer_field(field) then
		return release_write(name, field, count)
	end
	return release_read(name, field, count)
end
