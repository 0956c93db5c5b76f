-- Break a lock of any kind by force, as Redisson's forceUnlock does (forceUnlockAsync of RedissonLock,
-- RedissonFairLock, RedissonReadLock, RedissonWriteLock).
-- KEYS     lock hash, holds hash, Redisson's queue and deadlines, our waiters, ends of our readers
-- ARGV[1]  the owner that must hold the lock still, empty for any; of several readers only this one loses its holds
-- ARGV[2]  channel of a plain or fair lock; with a '+' in front in a cluster
-- ARGV[3]  channel of a read/write lock; the same
-- ARGV[4]  what the names of its timeout keys begin with
-- ARGV[5]  wake queue
-- ARGV[6]  turn
-- ARGV[7]  permits of a semaphore, ARGV[8] its remembered total, ARGV[9] its channel
-- ARGV[10] plain, read, write or sem: the kind that the lock must be of, empty for any. Of a writer that has read locks, too,
--          read means these alone
-- Returns  {1, holder, number of holders, note}  broken; one of the holders, and its note, which may be empty
--          {2, holder, number of holders, note, error}  broken, but a waiter could not be notified, for this reason
--          {3, holder, number of holders, note}  other owners hold it, or it is of another kind; nothing was changed
--          {0}  the lock is free
--          {-1, type}  the key is something else; nothing was changed
local name = { lock = KEYS[1], holds = KEYS[2], queue = KEYS[3], deadlines = KEYS[4], waiters = KEYS[5],
	ends = KEYS[6], remembered = ARGV[8] }
local permits, semaphore_channel = ARGV[7], ARGV[9]
local expected, mutex_channel, readwrite_channel, timeouts, wanted = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[10]
name.wake_queue, name.turn = ARGV[5], ARGV[6]

-- To break the holds of a semaphore.

-- All permits that are held: for each {its id, its hold, its owner, the note}.
local function held_permits(name)
	local held = {}
	for i, id in ipairs(redis.call('ZRANGE', name.permits, 0, -1)) do
		local hold_id = hold_of(id)
		local owner, _, _, _, note = hold_record_parse(hold_id and redis.call('HGET', name.holds, hold_id) or '')
		held[i] = { id = id, hold_id = hold_id, owner = owner or printable_id(id), note = note or '' }
	end
	return held
end

-- Breaks the permits of the owner `expected`. When that is empty it breaks all, also those that have no holder, which
-- RSemaphore acquired. Returns the reply of break.lua.
local function break_permits(name, expected)
	local held, holder, owners, count = held_permits(name), nil, {}, 0
	local counter = redis.call('GET', name.lock)
	local total = math.max(remembered_total(name) or 0, (counter or 0) + #held)
	-- A counter that was deleted is made anew, as by an acquisition.
	local free = tonumber(counter or total - #held)
	for _, permit in ipairs(held) do
		holder = holder and owners[holder.owner] and holder or permit
		if expected == '' or permit.owner == expected then
			holder = permit
			count = count + (owners[permit.owner] and 0 or 1)
			owners[permit.owner] = true
		end
	end
	if total == free then
		return { 0 }
	elseif #held > 0 and count == 0 then
		return { 3, holder.owner, #held, holder.note }
	elseif #held == 0 and expected ~= '' then
		return { 0 }
	end
	local broken = 0
	for _, permit in ipairs(held) do
		if owners[permit.owner] then
			redis.call('ZREM', name.ends, permit.id)
			redis.call('HDEL', name.holds, permit.hold_id or '')
			broken = broken + redis.call('ZREM', name.permits, permit.id)
		end
	end
	if expected == '' then
		broken = total - free
		-- What is left of holds that were lost.
		redis.call('DEL', name.ends, name.holds)
	end
	if not counter then redis.call('SET', name.lock, digits(free)) end
	notify_of_permits(name, redis.call('INCRBY', name.lock, broken), broken)
	holder = holder or { owner = 'a client without a record', note = '' }
	if publish_error then
		return { 2, holder.owner, math.max(count, 1), holder.note, publish_error }
	end
	return { 1, holder.owner, math.max(count, 1), holder.note }
end

local listed = redis.pcall('HGETALL', name.lock)
local may_be_semaphore = wanted == '' or wanted == 'sem'
local counter = may_be_semaphore and is_wrong_type(listed) and redis.pcall('GET', name.lock)
-- While permits are held the counter may have been deleted.
local has_permits = may_be_semaphore and not is_error(listed) and #listed == 0 and redis.pcall('TYPE', permits).ok == 'zset'
if type(counter) == 'string' or has_permits then
	if counter and not is_permits_counter(counter) then return { -1, NOT_A_COUNTER } end
	name.permits, name.channel = permits, channel_of(semaphore_channel)
	local side_type = overwritten_kind(name)
	if side_type then return { -1, side_type } end
	return replica_error(name) or break_permits(name, expected)
elseif is_error(counter) and not is_wrong_type(counter) then
	return denied_error('GET', counter)
elseif is_wrong_type(listed) then
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
		-- Left over from a lock, it would keep all others from acquiring it.
		redis.call('DEL', name.lock, name.holds, name.ends)
	end
	return replica_error(name) or { 0 }
end
name.timeouts = timeouts
if mode then
	name.channel = channel_of(readwrite_channel)
else
	name.channel = channel_of(mutex_channel)
end
-- A writer may have read locks, too: it is its write lock that is to be broken.
if expected ~= '' and mode and wanted ~= 'read' and counts[expected .. WRITE] then
	expected = expected .. WRITE
end

local function kind_of(field)
	if not mode then
		return 'plain'
	elseif is_writer_field(field) then
		return 'write'
	end
	return 'read'
end

-- The holders that are to lose the lock.
local targets = {}
for i = 1, #listed, 2 do
	local field = listed[i]
	if counts[field] and (wanted == '' or kind_of(field) == wanted) and (expected == '' or field == expected) then
		targets[#targets + 1] = field
	end
end
holder = targets[#targets] or holder
local holder_note = record_of(name.holds, holder)
if #targets == 0 then return { 3, holder, holders, holder_note } end

-- Before anything else is deleted: the user may lack the right to these keys.
local function delete_timeouts(field)
	if kind_of(field) == 'read' then
		for number = 1, counts[field] do
			redis.call('DEL', timeout_key(name, field, number))
		end
	end
end

-- Breaks the holds of one of several readers. nil, or the error when a right is missing.
local function break_reader(reader)
	local missing_key = timeout_key(name, reader, counts[reader] + 1)
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
	if err then return err end
	delete_timeouts(reader)
	remove_readers(name, { [reader] = true })
	settle(name, false)
	return nil
end

local function break_all()
	for field in pairs(counts) do delete_timeouts(field) end
	redis.call('DEL', name.lock, name.holds, name.ends)
	if not mode then
		notify_waiters(name)
	else
		wake_waiters(name, mode == 'write' and WAKE_ALL or WAKE_ONE)
	end
end

-- Not all readers: others keep the lock, or a writer does.
local are_some_readers = mode and #targets < holders and not is_writer_field(holder)
if are_some_readers then
	-- Not by `overwritten`: it knows nothing where the user may not ask for the type.
	if is_wrong_type(redis.pcall('HLEN', name.holds)) then
		redis.call('DEL', name.holds)
	end
	for _, reader in ipairs(targets) do
		local err = break_reader(reader)
		if err then return err end
	end
	holders = #targets
else
	break_all()
end
if publish_error then return { 2, holder, holders, holder_note, publish_error } end
return { 1, holder, holders, holder_note }
