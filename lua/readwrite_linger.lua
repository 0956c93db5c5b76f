-- Instead of a release of a read or write lock: leave it taken, and let it end by itself, with an owner that
-- is nobody's. Other holds go on as they are.
-- KEYS     for each name: lock hash, holds hash
-- ARGV[1]  hold id
-- ARGV[2]  what is left of the lock, in ms
-- ARGV[3+] for each name: channel, what its time-out keys begin with
-- Returns  one number a name: 2 done, 0 no such hold any more
local FIXED_ARGS = 2
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds' }, { 'channel', 'timeouts' }
local hold_id, left_ms = ARGV[1], ARGV[2]

-- include: names
-- include: now
-- include: entry
-- include: extend
-- include: publish
-- include: lingering
-- include: readers
-- include: readwrite_release

local function linger(name)
	local entry = redis.call('HGET', name.holds, hold_id)
	if not entry then
		return 0
	end
	local field, since_ms, _, token, note = entry_parse(entry)
	local count = tonumber(redis.call('HGET', name.lock, field))
	-- The first write, and one that a full server allows; those behind it are allowed then too.
	redis.call('HDEL', name.holds, hold_id)
	if not count then
		return 0
	end
	local nobody = field
	if not lingering_end(field) then
		nobody = lingering_owner(field, now_ms + left_ms)
		redis.call('HINCRBY', name.lock, nobody, 1)
	end
	if not is_of_writer(field) then
		redis.call('SET', timeout_key(name, nobody, 1), 1, 'PX', left_ms)
	end
	redis.call('HSET', name.holds, hold_id, entry_make(nobody, since_ms, left_ms, token, note))
	extend(name.lock, left_ms)
	extend(name.holds, left_ms)
	if nobody == field then
		return 2
	elseif is_of_writer(field) then
		release_write(name, field, count)
	else
		release_read(name, field, count)
	end
	return 2
end

local reply = {}
for index, name in ipairs(names) do
	reply[index] = linger(name)
end
return reply
