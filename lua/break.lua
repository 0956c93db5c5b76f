-- Break somebody's lock of any kind, as Redisson's forceUnlock does (forceUnlockAsync of RedissonLock,
-- RedissonFairLock, RedissonReadLock, RedissonWriteLock).
-- KEYS     lock hash, holds hash, Redisson's queue and deadlines, our waiters
-- ARGV[1]  the owner that must still be the holder, or empty for whoever it is; of several readers only he
--          loses his holds
-- ARGV[2]  channel of a plain or fair lock
-- ARGV[3]  channel of a read/write lock
-- ARGV[4]  what the names of its time-out keys begin with
-- Returns  {1, holder, number of holders}  broken; one of the holders
--          {2, holder, number of holders}  broken, but publishing was refused
--          {0}  nobody holds it           {3, holder}  somebody else holds it; nothing was changed
--          {-1, type}  the key is something else; nothing was changed
local name = { lock = KEYS[1], holds = KEYS[2], queue = KEYS[3], deadlines = KEYS[4], waiters = KEYS[5] }
local expected = ARGV[1]

-- include: now
-- include: refused
-- include: entry
-- include: extend
-- include: publish
-- include: lingering
-- include: leases
-- include: line
-- include: mutex_release
-- include: readers
-- include: readwrite_release

local listed = redis.pcall('HGETALL', name.lock)
if is_other_type(listed) then
	return { -1, redis.call('TYPE', name.lock).ok }
elseif is_error(listed) then
	return refused('HGETALL', listed)
end

local mode, holder, counts, holders = nil, nil, {}, 0
for i = 1, #listed, 2 do
	if listed[i] == 'mode' then
		mode = listed[i + 1]
	else
		holder, holders = listed[i], holders + 1
		counts[holder] = tonumber(listed[i + 1]) or 0
	end
end
if holders == 0 then
	if mode then
		-- What is left of a lock, and would keep everybody out.
		redis.call('DEL', name.lock, name.holds)
	end
	return { 0 }
end
-- A writer may have reads of his own inside: it is his lock, not his reads, that is to be broken.
if expected ~= '' and mode and counts[expected .. WRITE] then
	expected = expected .. WRITE
end
if expected ~= '' and not counts[expected] then
	return { 3, holder }
end
holder = expected ~= '' and expected or holder
name.channel, name.timeouts = mode and ARGV[3] or ARGV[2], ARGV[4]

local function drop_timeouts(field)
	for number = 1, counts[field] do
		redis.call('DEL', timeout_key(name, field, number))
	end
end

-- One of several readers.
local function break_reader()
	local entries = redis.call('HGETALL', name.holds)
	drop_timeouts(holder)
	redis.call('HDEL', name.lock, holder)
	for i = 1, #entries, 2 do
		if entry_parse(entries[i + 1]) == holder then
			redis.call('HDEL', name.holds, entries[i])
		end
	end
	return settle(name, false) ~= 3
end

local function break_all()
	redis.call('DEL', name.lock, name.holds)
	if not mode then
		return tell_waiters(name)
	end
	for field in pairs(counts) do
		drop_timeouts(field)
	end
	return publish(name.channel, mode == 'write' and WAKE_ALL or WAKE_ONE) ~= nil
end

local is_one_of_readers = mode and expected ~= '' and holders > 1 and not is_of_writer(holder)
local is_told
if is_one_of_readers then
	is_told, holders = break_reader(), 1
else
	is_told = break_all()
end
return { is_told and 1 or 2, holder, holders }
