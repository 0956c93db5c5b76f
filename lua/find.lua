-- Find the most recent hold of an owner. The script changes nothing.
-- Redisson none
-- KEYS[1]  lock hash
-- KEYS[2]  holds hash
-- ARGV[1]  owner
-- ARGV[2]  the kind to look for: plain, read, write or sem; empty: any
-- ARGV[3]  the purpose to look for, as PURPOSE in a record (inc/record.lua); empty: any
-- ARGV[4]  permits of a semaphore. The key is not in KEYS, so a user of locks needs no right to it
-- Returns  {hold id, ttl in ms, kind, note}  the hold. kind is plain (also for a fair lock, which is released in the same way),
--            read, write or sem. A hold on a lock that a user has overwritten has the ttl -2. Its kind is write if its record is
--            that of a writer; else read if ARGV[2] is read, otherwise plain
--          nil  the owner has no such hold of ours on the lock
--          {-1, type}  no hold was found, and the key is no lock, or its holds hash has this type

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

-- If the field OWNER:last names the owner's last hold of a semaphore, and that hold has a permit and the purpose to look for: a
-- list of its id and its record. Else a false value.
local function last_hold()
	local id = has_permits and redis.pcall('HGET', name.holds, owner .. LAST)
	id = type(id) == 'string' and string.match(id, '^ (%x+)$')
	local record = id and redis.call('HGET', name.holds, id) or ''
	local field, _, _, _, owner_note = hold_record_parse(record)
	local is_held = field == owner and has_purpose(owner_note) and redis.call('ZSCORE', permits, permit_id(id, 1))
	return is_held and { id, record }
end

-- The holds to search: a list in which each id is followed by its record.
-- If last_hold finds a hold, the list has only that one.
-- If the owner is a reader and the ids of its holds are known, the list has only these holds.
-- Otherwise the list has all holds, those of other owners as well.
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
-- The mode of an overwritten lock is lost. If the caller looks for a read lock, take the overwritten lock for one.
if is_readwrite or key_type and wanted == 'read' then kinds[owner] = 'read' end
if is_readwrite or key_type then kinds[owner .. WRITE] = 'write' end

local function is_wanted(field)
	if not kinds[field] or wanted ~= '' and kinds[field] ~= wanted then return false end
	return key_type or hold_count(redis.call('HGET', name.lock, field))
end

-- Whether this hold of a semaphore has a permit, and has the kind to look for. A hold without a permit is lost, so it is not
-- found.
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
	-- Compare the times as text: they have the same number of digits for centuries. If two holds have the same time, it does not
	-- matter which of them is found.
	if kind and (not latest_ms or since_ms >= latest_ms) then
		latest_id, latest_ms, latest_kind, latest_end_ms, latest_note = listed[i], since_ms, kind, end_ms, owner_note
	end
end
if latest_kind == 'sem' then return { latest_id, math.max(latest_end_ms - now_ms(), 0), latest_kind, latest_note } end
if latest_id and key_type then return { latest_id, OVERWRITTEN_TTL_MS, latest_kind, latest_note } end
if latest_id then return { latest_id, redis.call('PTTL', name.lock), latest_kind, latest_note } end
return replica_error(name) or key_type and not is_semaphore and { -1, key_type }
