-- How permits are released.

-- include: suffix
-- include: record
-- include: read_field
-- include: results
-- include: counter
-- include: slots
-- include: permits
-- include: notify_permits

-- Whether there is a counter to add the permits to. If not, the next acquisition counts the permits anew. Set name.overwritten if
-- a user has overwritten the counter. If the user lacks a right to the counter, raise the error now: once a permit was removed,
-- it could not be added to the counter.
local function has_counter(name)
	local counter = redis.pcall('GET', name.lock)
	if is_error(counter) and not is_wrong_type(counter) then redis.call('GET', name.lock) end
	if is_error(counter) or counter and not is_permits_counter(counter) then
		name.overwritten = redis.pcall('TYPE', name.lock).ok
		return false
	end
	-- Begin with an HDEL that deletes nothing, because no field is ''. A server whose memory is full allows HDEL, and after it
	-- every write of this script. Without the HDEL it would refuse INCRBY, which needs memory.
	redis.call('HDEL', name.holds, '')
	return counter and redis.call('INCRBY', name.lock, 0) ~= nil
end

-- Free the permits and slots of a hold that was removed. If some of its permits were missing, other holds may use its slots
-- already: then delete the field of slots.
local function free_permits(name, hold)
	local in_use = hold.removed == hold.count and known_slots(name.holds)
	for _, slot in ipairs(hold.slots) do in_use = in_use and without_slot(in_use, slot) end
	if not in_use or is_error(redis.pcall('HSET', name.holds, SLOTS, in_use)) then
		redis.pcall('HDEL', name.holds, SLOTS)
	end
	if name.has_counter and hold.removed > 0 then
		notify_of_permits(name, redis.call('INCRBY', name.lock, hold.removed), hold.removed)
	end
end

local function ids_of(hold_id, count)
	local ids = {}
	for number = 1, count do ids[number] = permit_id(hold_id, number) end
	return unpack(ids)
end

-- The hold as a table: the parts of its record, its slots, and count, the number of its permits. Set name.has_counter. Return
-- nil if there is no such hold: then name.overwritten may be set.
local function find_permits(name, hold_id)
	local record = read_field(name, name.holds, hold_id)
	if not record then return nil end
	local hold = {}
	hold.field, hold.since_ms, hold.end_ms, hold.token, hold.note = hold_record_parse(record)
	hold.count, hold.slots = permits_of(record)
	name.has_counter = has_counter(name)
	return hold
end

-- Remove a hold, but leave its slots in use. Return the hold with two more members. removed: how many of its permits existed.
-- is_lost: a permit was missing, or the lease had ended. Return nil if find_permits does, or if the record names no permits.
local function remove_permits(name, hold_id)
	local hold = find_permits(name, hold_id)
	if not hold then return nil end
	redis.call('HDEL', name.holds, hold_id, hold_id .. STOP, (hold.field or '') .. LAST)
	if hold.count == 0 then return nil end
	-- Use pcall: if a user has overwritten name.ends, the permits must be released all the same.
	redis.pcall('ZREM', name.ends, ids_of(hold_id, hold.count))
	hold.removed = redis.call('ZREM', name.permits, ids_of(hold_id, hold.count))
	hold.is_lost = hold.removed < hold.count or tonumber(hold.end_ms) <= now_ms()
	return hold
end

-- Release a hold, and return the result of the name: see results.lua.
local function release_permits(name, hold_id)
	local hold = remove_permits(name, hold_id)
	if not hold then return 0 end
	free_permits(name, hold)
	return hold.is_lost and 3 or 2
end
