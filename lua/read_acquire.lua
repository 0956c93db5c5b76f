-- Take the read lock of every name, or of none. Readers share it; an owner's write lock does not exclude
-- his reads (RedissonReadLock.tryLockInnerAsync). A reader who came after a writer of ours lets him have
-- his turn first, or readers that come and go would keep him out for ever; Java's readers don't.
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV     see inc/request.lua; of each name: what its time-out keys begin with
-- Returns  as plain_acquire.lua; ttl -2 when no writer holds the lock, and holder is the one who is next
-- include: request
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'writer', 'ends' }, { 'timeouts' }
-- include: names
-- include: now
-- include: denied
-- include: rights
-- include: hold_record_extend
-- include: ttl_extend
-- include: kept_hold
-- include: reentrant_owners
-- include: replica
-- include: acquire
-- include: readers
-- include: readers_extend
-- include: free_if_empty
-- include: reader_ends
-- include: reader_ends_record
-- include: readers_expired
-- include: write_suffix
-- include: writer_field

-- The lock was deleted under our readers, or ran out, and Java's have it since: those that stand here would be taken
-- for them. The first of ours that comes finds none of them in the lock, so a look at one is enough. By pcall: what
-- the user has no right to is found out later, where it can be undone.
local function delete_ends_of_lost_lock(name)
	local reader = redis.pcall('ZRANGE', name.ends, 0, 0)[1]
	if reader and redis.pcall('HEXISTS', name.lock, reader) == 0 then
		redis.pcall('DEL', name.ends)
	end
end

-- Until when a lock in mode write is one: nil for as long as its writer has it, else how long the last of his
-- holds lingers yet; 0 or less when none does, and only reads of his are left.
local function kept_write_ms(name)
	local last_ms = 0
	for _, field in ipairs(redis.call('HKEYS', name.lock)) do
		if field ~= 'mode' and is_writer_field(field) then
			local end_ms = kept_until(field)
			if not end_ms then
				return nil
			end
			last_ms = math.max(last_ms, end_ms)
		end
	end
	return last_ms - now_ms
end

-- The writer who came before us and waits: owner, note, and how long he need not be heard of.
local function earlier_writer(name)
	local since_us, owner, writer_note =
		string.match(redis.call('GET', name.writer) or '', '^(%d+) (%S+) (.*)$')
	if since_us and tonumber(since_us) < (waits_since_us or now_us) then
		return owner, writer_note, redis.call('PTTL', name.writer)
	end
	return nil
end

local function obstacle(index, name)
	local reply, since = examine(index, name), digits(waits_since_us or now_us)
	if reply then
		return reply
	end
	local mode = redis.call('HGET', name.lock, 'mode')
	if not name.is_free and not mode then
		return { -1, index, 'plain or fair lock' }
	end
	for _, owner in ipairs(reentrant_owners) do
		remove_if_expired(name, owner)
	end
	free_if_empty(name)
	mode = not name.is_free and mode
	name.owner = not name.is_free
		and (holding_owner(name.lock, '') or holding_owner(name.lock, WRITE))
	local kept_ms = mode == 'write' and kept_write_ms(name)
	name.is_ended_write = mode == 'write' and kept_ms and kept_ms <= 0
	if not name.owner then
		if mode == 'write' and not name.is_ended_write then
			local holder, holder_note = holder_of(name)
			local ttl_ms = kept_ms or redis.call('PTTL', name.lock)
			return { 0, index, ttl_ms, holder, holder_note, -1, since }
		end
		local writer, writer_note, retry_after_ms = earlier_writer(name)
		if writer then
			return { 0, index, -2, writer, writer_note, retry_after_ms + 1, since }
		end
		name.owner = fresh_owner
	end
	name.field = name.owner
	return nil
end

local function count_one(name)
	if not name.is_free then
		local count = redis.call('HINCRBY', name.lock, name.field, 1)
		if name.is_ended_write then
			redis.call('HSET', name.lock, 'mode', 'read')
		end
		return count
	end
	redis.call('HSET', name.lock, 'mode', 'read')
	local count = redis.pcall('HINCRBY', name.lock, name.field, 1)
	if is_error(count) then
		redis.pcall('DEL', name.lock)
		return denied_error('HINCRBY', count)
	end
	return count
end

-- One hold more of a reader, among others perhaps: what is undone is his alone.
local function join(name, token)
	delete_ends_of_lost_lock(name)
	local count = count_one(name)
	if is_error(count) then
		return count
	end
	delete_overwritten_ends(name)
	local key = timeout_key(name, name.owner, count)
	local undo = {
		{ 'HINCRBY', name.lock, name.field, -1 },
		{ 'DEL', key },
		{ 'HDEL', name.holds, hold_id },
	}
	if count == 1 then
		undo[1] = { 'HDEL', name.lock, name.field }
		undo[#undo + 1] = { 'ZREM', name.ends, name.field }
	end
	if name.is_free then
		undo[#undo + 1] = { 'HDEL', name.lock, 'mode' }
		undo[#undo + 1] = { 'DEL', name.lock }
		undo[#undo + 1] = { 'DEL', name.holds, name.ends }
	end
	-- No hold has that number. What takes longer with each reader is tried out there.
	local missing_key = timeout_key(name, name.owner, 0)
	local err = try_all({
		name.is_free and { 'DEL', name.holds, name.ends } or { 'DEL', key },
		{ 'SET', key, 1, 'PX', lease_ms },
		{ 'HSET', name.holds, hold_id, new_hold_record(name, token) },
		{ 'PEXPIRE', key, lease_ms },
		{ 'PTTL', name.lock },
		{ 'HEXISTS', name.lock, name.field },
		{ 'HGETALL', missing_key },
		{ 'HGET', name.holds, hold_id },
		{ 'HDEL', name.holds, '' },
		{ 'HVALS', missing_key },
		{ 'ZADD', name.ends, 'GT', digits(now_ms + lease_ms), name.owner },
		{ 'ZREM', name.ends, '' },
		{ 'ZRANGE', name.ends, 0, 0 },
		{ 'ZCARD', name.ends },
		name.is_free and { 'PEXPIRE', name.lock, lease_ms } or nil,
	}, undo)
	if err then
		return err
	end
	return { count, '-' }
end

local function acquire_shared(name)
	local entry = not name.is_free and redis.call('HGET', name.holds, hold_id)
	local taken
	if entry then
		hold_record_extend(name.holds, hold_id, entry, lease_ms)
		taken = { tonumber(redis.call('HGET', name.lock, name.field)), '-' }
		extend_reader(name, name.owner, taken[1], lease_ms)
		record_end(name, name.owner, tonumber(lease_ms))
	else
		taken = join(name, '-')
	end
	if not is_error(taken) then
		extend(name.lock, lease_ms)
		extend(name.holds, lease_ms)
		extend_ends(name, lease_ms)
		remove_expired(name)
	end
	return taken
end

for index, name in ipairs(names) do
	local reply = obstacle(index, name)
	if reply then
		return replica_error(name) or reply
	end
end
return acquire_all(acquire_shared)
