-- The holds that keep a read/write lock after a release.

-- include: remaining
-- include: expired_readers
-- include: readwrite

-- How long the longest of our readers lasts, apart from the reader `except`; 0: no other reader holds the lock.
local function longest_reader_ms(name, except)
	for position = 0, EXPIRED_MAX - 1 do
		local owner = redis.call('ZRANGE', name.ends, position, position, 'REV')[1]
		if not owner then return 0 end
		local left_ms = owner ~= except and our_reader_ttl_ms(name, owner) or 0
		if left_ms > 0 then return left_ms end
	end
	-- The EXPIRED_MAX readers with the latest recorded ends have expired, but others may not have. Keep the lock for now: when
	-- the recorded ends have passed, a request checks the readers again.
	return math.max(redis.call('PTTL', name.lock), LATE_MS)
end

-- How long a lock with many readers is still held. nil: the caller must check each field, because there are few fields, there is
-- a writer, or a reader of Redisson's may last longest.
local function many_readers_ms(name, except)
	if redis.call('HLEN', name.lock) <= FIELDS_MAX then return nil end
	if redis.call('HGET', name.lock, 'mode') ~= 'read' then return nil end
	local left_ms = longest_reader_ms(name, except)
	local ours = redis.call('ZCARD', name.ends)
	local are_all_ours = redis.call('HLEN', name.lock) - 1 == ours
	if are_all_ours or left_ms >= redis.call('PTTL', name.lock) then return left_ms end
	return nil
end

-- The holders of the lock apart from the field `except`: the fields of the writer and of its kept holds, and how long the
-- longest reader lasts.
local function holders_left(name, except)
	local left = { writers = {}, reads_ms = 0 }
	local many_ms = many_readers_ms(name, except)
	if many_ms then
		left.reads_ms = many_ms
		return left
	end
	local listed = redis.call('HGETALL', name.lock)
	for i = 1, #listed, 2 do
		local field, count = listed[i], hold_count(listed[i + 1])
		if field ~= 'mode' and field ~= except and is_writer_field(field) then
			left.writers[#left.writers + 1] = field
		elseif count and field ~= except then
			left.reads_ms = math.max(left.reads_ms, reader_ttl_ms(name, field, count))
		end
	end
	return left
end

local function set_all_ttls(name, ttl_ms)
	set_ttl(name, ttl_ms)
	if not has_java_readers(name) then redis.pcall('PEXPIRE', name.ends, digits(ttl_ms)) end
end

local function leave_free(name, was_write)
	delete_all(name)
	if not is_regained_next(name) then redis.pcall('DEL', name.turn) end
	-- wire: a writer wakes all waiters, the last reader wakes one.
	wake_waiters(name, was_write and WAKE_ALL or WAKE_ONE)
	return 2
end

-- Leave the lock to the holds that are left, as a write or a read lock, or free it. Return 1 or 2: see results.lua.
local function leave_or_free(name, left, was_write)
	if redis.call('HLEN', name.lock) <= 1 then return leave_free(name, was_write) end
	local is_held, is_earlier
	if left.writers[1] then is_held, is_earlier = leave_to_holders(name, left.writers, left.reads_ms, set_all_ttls) end
	if is_earlier then wake_waiters(name, WAKE_ALL) end
	if is_held then return 1 end
	if left.reads_ms > 0 then
		set_all_ttls(name, left.reads_ms)
		if redis.call('HGET', name.lock, 'mode') == 'write' then
			redis.call('HSET', name.lock, 'mode', 'read')
			-- The lock has become a read lock, so notify other readers, which may now acquire it. Redisson does not notify them.
			publish(name.channel, WAKE_ALL)
		end
		return 1
	end
	return leave_free(name, was_write or left.writers[1])
end
