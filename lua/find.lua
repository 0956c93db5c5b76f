-- Find the most recent hold of an owner. This changes nothing.
-- Redisson none
-- KEYS[1]  lock hash
-- KEYS[2]  holds hash
-- ARGV[1]  owner
-- ARGV[2]  the kind to look for, as it is returned; empty: any
-- ARGV[3]  the purpose to look for, as in a record; empty: any
-- ARGV[4]  permits of a semaphore (not in KEYS: a user of locks needs no right to them)
-- Returns  {hold id, ttl in ms, kind, note}, or nil if the owner has no hold of ours on the lock. kind is plain (also for a fair lock,
--            which is released in the same way), read, write or sem. A hold on a lock that a user has overwritten is found as well,
--            with ttl -2. Its kind is write if its record is that of a writer; else read if ARGV[2] is read, otherwise plain
--          {-1, type}  the key is no lock, or its holds hash has this type

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

-- Whether the hold with this note has the purpose to look for: the note begins with its purpose (lib/hold.h).
local function has_purpose(owner_note) return purpose == '' or string.match(owner_note, '^(%l+)%.') == purpose end

-- The owner's last hold of a semaphore, as id and record, if the field OWNER:last names it.
local function last_hold()
	local id = has_permits and redis.pcall('HGET', name.holds, owner .. LAST)
	id = type(id) == 'string' and string.match(id, '^ (%x+)$')
	local record = id and redis.call('HGET', name.holds, id) or ''
	local field, _, _, _, owner_note = hold_record_parse(record)
	local is_held = field == owner and has_purpose(owner_note) and redis.call('ZSCORE', permits, permit_id(id, 1))
	return is_held and { id, record }
end

-- The holds to search: a list in which each id is followed by its record. If the owner's last hold of a semaphore is known, the
-- list has only that one. For a reader it has the holds of this owner, otherwise all holds.
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
-- Take an overwritten lock for a read lock if the caller looks for one: its mode is lost.
if is_readwrite or key_type and wanted == 'read' then kinds[owner] = 'read' end
if is_readwrite or key_type then kinds[owner .. WRITE] = 'write' end

local function is_wanted(field)
	if not kinds[field] or wanted ~= '' and kinds[field] ~= wanted then return false end
	return key_type or hold_count(redis.call('HGET', name.lock, field))
end

-- Whether this hold of a semaphore has a permit. A hold without one is lost.
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
	-- Do not parse the records of other owners: there may be thousands.
	local record = string.sub(listed[i + 1], 1, #owner) == owner and listed[i + 1] or ''
	local field, since_ms, end_ms, _, owner_note = hold_record_parse(record)
	local kind = field and has_purpose(owner_note) and kind_of(listed[i], field)
	-- Compare as text: these numbers have the same length for centuries. If two holds have the same time, either is
	-- right.
	if kind and (not latest_ms or since_ms >= latest_ms) then
		latest_id, latest_ms, latest_kind, latest_end_ms, latest_note = listed[i], since_ms, kind, end_ms, owner_note
	end
end
if latest_kind == 'sem' then return { latest_id, math.max(latest_end_ms - now_ms(), 0), latest_kind, latest_note } end
if latest_id and key_type then return { latest_id, OVERWRITTEN_TTL_MS, latest_kind, latest_note } end
if latest_id then return { latest_id, redis.call('PTTL', name.lock), latest_kind, latest_note } end
return replica_error(name) or key_type and not is_semaphore and { -1, key_type }
