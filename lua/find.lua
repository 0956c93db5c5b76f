-- The most recent hold of an owner. It changes nothing.
-- Redisson none
-- KEYS[1]  lock hash
-- KEYS[2]  holds hash
-- ARGV[1]  owner
-- ARGV[2]  the kind that is wanted, as it is returned; empty for any
-- ARGV[3]  the purpose that is wanted, as in a record; empty for any
-- ARGV[4]  permits of a semaphore (not in KEYS: a user of locks needs no right to them)
-- Returns  {hold id, ttl in ms, kind, note}, or nil when the owner does not hold the lock by a hold of ours. kind is plain (a
--            fair lock is released alike), read, write or sem. A hold on a lock that was overwritten is found, too, with
--            a ttl of -2: as write, as read if that is wanted, else as plain.
--          {-1, type}  the key, or that of its holds, is something else

-- include: suffix
-- include: denied
-- include: value
-- include: clock
-- include: record
-- include: lock_fields
-- include: counter
-- include: permit_ids
-- include: reader_holds

local name, owner, wanted = { lock = KEYS[1], holds = KEYS[2] }, ARGV[1], ARGV[2]
local purpose, permits = ARGV[3], ARGV[4]

local OVERWRITTEN_TTL_MS = -2

local key_type = overwritten(name)
local is_readwrite = not key_type and redis.call('HEXISTS', name.lock, 'mode') == 1

local is_lock = redis.pcall('TYPE', name.lock).ok == 'hash'
local has_permits = not is_lock and redis.pcall('TYPE', permits).ok == 'zset'

-- Whether a hold with that note is for the purpose that is wanted. The note begins with the purpose (lib/hold.h).
local function has_purpose(owner_note) return purpose == '' or string.match(owner_note, '^(%l+)%.') == purpose end

-- The last hold of the owner, of a semaphore, where it is known.
local function last_hold()
	local id = has_permits and redis.pcall('HGET', name.holds, owner .. LAST)
	id = type(id) == 'string' and string.match(id, '^ (%x+)$')
	local record = id and redis.call('HGET', name.holds, id) or ''
	local field, _, _, _, owner_note = hold_record_parse(record)
	local is_held = field == owner and has_purpose(owner_note) and redis.call('ZSCORE', permits, permit_id(id, 1))
	return is_held and { id, record }
end

-- Ids and records by turns: those of the owner, if it is one of many readers, or the last one of a semaphore, else all.
local function list_holds()
	local last = last_hold()
	if last then return last end
	local is_reader = is_readwrite and redis.call('HEXISTS', name.lock, owner .. WRITE) == 0
	local count = is_reader and hold_count(redis.call('HGET', name.lock, owner)) or 0
	local ids, records = reader_holds(name, owner, count)
	if not is_reader or not ids then return redis.pcall('HGETALL', name.holds) end
	local listed = {}
	for i, id in ipairs(ids) do
		listed[2 * i - 1], listed[2 * i] = id, records[i]
	end
	return listed
end

local listed = list_holds()
if is_error(listed) then return key_type and { -1, key_type } or command_error('HGETALL', listed) end

local counter = key_type == 'string' and redis.pcall('GET', name.lock)
local is_semaphore = has_permits or type(counter) == 'string' and is_permits_counter(counter)
local kinds = { [owner] = 'plain' }
-- Whether a lock that was overwritten was a read lock is not known.
if is_readwrite or key_type and wanted == 'read' then kinds[owner] = 'read' end
if is_readwrite or key_type then kinds[owner .. WRITE] = 'write' end

local function is_wanted(field)
	if not kinds[field] or wanted ~= '' and kinds[field] ~= wanted then return false end
	return key_type or hold_count(redis.call('HGET', name.lock, field))
end

-- Of a semaphore a hold has permits, or it is lost.
local function is_permit(id, field)
	return has_permits and field == owner and (wanted == '' or wanted == 'sem')
		and redis.call('ZSCORE', permits, permit_id(id, 1))
end

local function kind_of(id, field)
	if is_semaphore then return is_permit(id, field) and 'sem' end
	return is_wanted(field) and kinds[field]
end

local latest_id, latest_ms, latest_kind, latest_end_ms, latest_note
for i = 1, #listed, 2 do
	-- There may be thousands: those of others are not parsed.
	local record = string.sub(listed[i + 1], 1, #owner) == owner and listed[i + 1] or ''
	local field, since_ms, end_ms, _, owner_note = hold_record_parse(record)
	local kind = field and has_purpose(owner_note) and kind_of(listed[i], field)
	-- The times have the same length for centuries, so text compares as numbers; ties go to one of the two.
	if kind and (not latest_ms or since_ms >= latest_ms) then
		latest_id, latest_ms, latest_kind, latest_end_ms, latest_note = listed[i], since_ms, kind, end_ms, owner_note
	end
end
if latest_kind == 'sem' then return { latest_id, math.max(latest_end_ms - now_ms(), 0), latest_kind, latest_note } end
if latest_id and key_type then return { latest_id, OVERWRITTEN_TTL_MS, latest_kind, latest_note } end
if latest_id then return { latest_id, redis.call('PTTL', name.lock), latest_kind, latest_note } end
return replica_error(name) or key_type and not is_semaphore and { -1, key_type }
