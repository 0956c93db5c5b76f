-- The most recent hold of an owner. Reads only.
-- KEYS[1]  lock hash
-- KEYS[2]  holds hash
-- ARGV[1]  owner
-- ARGV[2]  the kind it is to be of, as in what is returned; empty for whichever it is
-- Returns  {hold id, ttl in ms, kind}, or nil when the owner does not hold the lock by one of ours; kind is
--            plain (a fair one is given back alike), read or write. A hold on a lock that was overwritten is found
--            as well, as plain or write, with a ttl of -2.
--          {-1, type}  the key, or that of its holds, is something else
local name, owner, wanted = { lock = KEYS[1], holds = KEYS[2] }, ARGV[1], ARGV[2]

-- include: denied
-- include: overwritten
-- include: hold_record
-- include: hold_count

local key_type = overwritten(name)
local listed = redis.pcall('HGETALL', name.holds)
if key_type and is_error(listed) then
	return { -1, key_type }
elseif is_error(listed) then
	return denied_error('HGETALL', listed)
end

local is_readwrite = not key_type and redis.call('HEXISTS', name.lock, 'mode') == 1
-- Of a lock that was overwritten nobody knows whether it was a read lock.
local kinds = { [owner] = (is_readwrite or key_type and wanted == 'read') and 'read' or 'plain' }
if is_readwrite or key_type then
	-- wire: RedissonWriteLock.getLockName
	kinds[owner .. ':write'] = 'write'
end

local function is_held(field)
	return key_type or hold_count(redis.call('HGET', name.lock, field))
end

local latest_id, latest_ms, latest_kind
for i = 1, #listed, 2 do
	local field, since_ms = hold_record_parse(listed[i + 1])
	-- Same length for centuries, so text compares as numbers; ties go to one of the two.
	local is_wanted = kinds[field] and (wanted == '' or kinds[field] == wanted)
	if is_wanted and is_held(field) and (not latest_ms or since_ms >= latest_ms) then
		latest_id, latest_ms, latest_kind = listed[i], since_ms, kinds[field]
	end
end
if not latest_id then
	return key_type and { -1, key_type } or nil
end
return { latest_id, key_type and -2 or redis.call('PTTL', name.lock), latest_kind }
