-- Break somebody's lock of any kind, as Redisson's forceUnlock does (forceUnlockAsync of RedissonLock,
-- RedissonFairLock, RedissonReadLock, RedissonWriteLock).
-- KEYS     lock hash, holds hash, Redisson's queue and deadlines, our waiters, ends of our readers
-- ARGV[1]  the owner that must still be the holder, or empty for whoever it is; of several readers only he
--          loses his holds
-- ARGV[2]  channel of a plain or fair lock
-- ARGV[3]  channel of a read/write lock
-- ARGV[4]  what the names of its time-out keys begin with
-- ARGV[5]  plain, read or write: the kind that the lock must be of; empty for whichever it is. Of a writer that
--          has reads of its own inside, read means these alone
-- Returns  {1, holder, number of holders}  broken; one of the holders
--          {2, holder, number of holders, error}  broken, but somebody could not be told, for this reason
--          {0}  nobody holds it           {3, holder}  somebody else holds it; nothing was changed
--          {-1, type}  the key is something else; nothing was changed
local name = { lock = KEYS[1], holds = KEYS[2], queue = KEYS[3], deadlines = KEYS[4], waiters = KEYS[5],
	ends = KEYS[6] }
local expected, wanted = ARGV[1], ARGV[5]

-- include: denied
-- include: rights
-- include: publish
-- include: hold_count
-- include: mutex_notify
-- include: readers
-- include: readers_remove
-- include: reader_ends
-- include: readwrite_settle
-- include: lock_fields
-- include: write_suffix
-- include: writer_field
-- include: wrong_type

local listed = redis.pcall('HGETALL', name.lock)
if is_wrong_type(listed) then
	return { -1, redis.call('TYPE', name.lock).ok }
elseif is_error(listed) then
	return denied_error('HGETALL', listed)
end

local mode, holder, counts, holders = nil, nil, {}, 0
for i = 1, #listed, 2 do
	local field, value = listed[i], listed[i + 1]
	if is_mode(field, value) then
		mode = value
	elseif hold_count(value) then
		holder, holders = field, holders + 1
		counts[holder] = hold_count(value)
	else
		return { -1, NOT_A_LOCK }
	end
end
if holders == 0 then
	if mode then
		-- What is left of a lock, and would keep everybody out.
		redis.call('DEL', name.lock, name.holds, name.ends)
	end
	return { 0 }
end
-- A writer may have reads of its own inside: it is its lock, not its reads, that is to be broken.
if expected ~= '' and mode and wanted ~= 'read' and counts[expected .. WRITE] then
	expected = expected .. WRITE
end

local function is_wanted(field)
	local kind = mode and (is_writer_field(field) and 'write' or 'read') or 'plain'
	return (wanted == '' or kind == wanted) and (expected == '' or field == expected)
end

-- Those that are to lose it.
local targets = {}
for i = 1, #listed, 2 do
	if counts[listed[i]] and is_wanted(listed[i]) then
		targets[#targets + 1] = listed[i]
	end
end
if #targets == 0 then
	return { 3, holder }
end
holder = targets[#targets]
name.channel, name.timeouts = mode and ARGV[3] or ARGV[2], ARGV[4]

-- Before anything else is deleted: a user may lack the right to these keys.
local function delete_timeouts(field)
	for number = 1, is_writer_field(field) and 0 or counts[field] do
		redis.call('DEL', timeout_key(name, field, number))
	end
end

-- One of several readers. nil, or the error when it was refused.
local function break_reader(holder)
	local missing_key = timeout_key(name, holder, counts[holder] + 1)
	delete_overwritten_ends(name)
	local err = try_all({
		{ 'PTTL', name.lock },
		{ 'HLEN', name.lock },
		{ 'HGET', name.lock, 'mode' },
		{ 'HVALS', name.holds },
		{ 'HGETALL', name.holds },
		{ 'HDEL', name.holds, '' },
		{ 'ZREM', name.ends, '' },
		{ 'ZRANGE', name.ends, 0, 0 },
		{ 'ZCARD', name.ends },
		{ 'PEXPIRE', missing_key, 1 },
		{ 'DEL', missing_key },
	})
	if err then
		return err
	end
	delete_timeouts(holder)
	remove_readers(name, { [holder] = true })
	settle(name, false)
	return nil
end

local function break_all()
	if mode then
		for field in pairs(counts) do
			delete_timeouts(field)
		end
	end
	redis.call('DEL', name.lock, name.holds, name.ends)
	if mode then
		publish(name.channel, mode == 'write' and WAKE_ALL or WAKE_ONE)
	else
		notify_waiters(name)
	end
end

-- Readers that are not all: a writer has the lock, or other readers keep it.
local are_some_readers = mode and #targets < holders and not is_writer_field(holder)
if are_some_readers then
	-- Not by `overwritten`: it knows nothing where the user may not ask for the type.
	if is_wrong_type(redis.pcall('HLEN', name.holds)) then
		redis.call('DEL', name.holds)
	end
	for _, reader in ipairs(targets) do
		local err = break_reader(reader)
		if err then
			return err
		end
	end
	holders = #targets
else
	break_all()
end
return { publish_error and 2 or 1, holder, holders, publish_error }
