-- How read and write locks are released.

-- include: release
-- include: readwrite_left

-- Set name.own_ms, how long the longest hold of this reader lasts (0 for a writer), and name.left, the holders that remain
-- without this hold. For a reader, name.left leaves out all its holds. Call this before the hold is changed: it raises an error
-- while a timeout key is on another node.
local function measure_readers(name, field, count)
	local is_read = not is_writer_field(field)
	-- If the hash has only the mode and the writer, do not search for readers: while the slot of the lock moves, that search is
	-- an error.
	if not is_read and redis.call('HLEN', name.lock) == 2 then
		name.own_ms, name.left = 0, { writers = { count > 1 and field or nil }, reads_ms = 0 }
		return
	end
	remove_expired(name)
	name.own_ms = is_read and reader_ttl_ms(name, field, count) or 0
	name.left = holders_left(name, (is_read or count == 1) and field)
end

-- Remove the hold from the field of its reader. The record is deleted already, so a server whose memory is full allows the
-- write. Overwrite the field rather than deleting it first: a hash without fields is deleted, and loses its TTL.
local function remove_reader_hold(name, owner)
	local listed = redis.call('HGET', name.holds, owner) or ''
	local rest = string.gsub(listed, ' ' .. hold_id, '')
	if rest == '' then
		redis.call('HDEL', name.holds, owner)
	else
		redis.call('HSET', name.holds, owner, rest)
	end
end

-- Release a hold of a reader. It is not known which timeout key belongs to which hold. So let all holds that remain last as long
-- as the longest of them.
local function release_read(name, owner, count)
	if name.own_ms == 0 then
		remove_readers(name, { [owner] = true })
		leave_or_free(name, name.left, false)
		return 3
	end
	-- wire: delete the timeout key with the highest number, whichever hold is released.
	redis.call('DEL', timeout_key(name, owner, count))
	if count == 1 then
		redis.call('HDEL', name.lock, owner)
		redis.call('ZREM', name.ends, owner)
		-- Use pcall: the hash may have had no other field, and while the slot of the lock moves, a missing key is an error.
		redis.pcall('HDEL', name.holds, owner)
		return leave_or_free(name, name.left, false)
	end
	redis.call('HINCRBY', name.lock, owner, -1)
	remove_reader_hold(name, owner)
	local _, records = reader_holds(name, owner, count - 1)
	local left_ms = math.min(name.own_ms, owners_left_ms(name, { owner }, records)[owner])
	if left_ms <= 0 then
		for number = 1, count - 1 do redis.call('DEL', timeout_key(name, owner, number)) end
		remove_readers(name, { [owner] = true })
		return leave_or_free(name, name.left, false)
	end
	for number = 1, count - 1 do
		redis.call('SET', timeout_key(name, owner, number), 1, 'PX', digits(left_ms))
	end
	redis.call('ZADD', name.ends, 'XX', digits(now_ms() + left_ms), owner)
	name.left.reads_ms = math.max(name.left.reads_ms, left_ms)
	return leave_or_free(name, name.left, false)
end

-- Release a hold. Call measure_readers first.
local function release_readwrite(name, field, count)
	if not is_writer_field(field) then return release_read(name, field, count) end
	remove_one(name, field, count)
	return leave_or_free(name, name.left, true)
end
