-- The part that all releases of locks have in common.

-- include: suffix
-- include: record
-- include: kept
-- include: lock_fields
-- include: read_field
-- include: results

-- The hold as a table: the parts of its record, and count, the number of its owner's holds on the lock. count is nil if the
-- owner is not in the lock any more, or if a user has overwritten the record. Return nil if there is no such hold: then
-- name.overwritten may be set.
local function find_hold(name, hold_id)
	local record = read_field(name, name.holds, hold_id)
	if not record then return nil end
	local hold = {}
	hold.field, hold.since_ms, hold.end_ms, hold.token, hold.note = hold_record_parse(record)
	local count = hold.field and read_field(name, name.lock, hold.field)
	if name.overwritten then return nil end
	hold.count = count and hold_count(count)
	return hold
end

-- Remove one hold of an owner that has count of them.
local function remove_one(name, field, count)
	if count > 1 then return redis.call('HINCRBY', name.lock, field, -1) end
	redis.call('HDEL', name.lock, field)
end

-- Release a hold of every name, by release_one(name, field, count, hold). prepare(name, field, count) is called before anything
-- is changed.
-- keep has the arguments of release_one, and is called before it. True: it has kept the hold. False: it has changed nothing, and
-- the hold must be released all the same. keep must overwrite the record, not delete it: while the slot of the lock moves to
-- another node, a deleted hash cannot be created again.
local function release_all(hold_id, release_one, prepare, keep)
	local function release(name)
		local hold = find_hold(name, hold_id)
		if not hold then return 0 end
		if hold.count and prepare then prepare(name, hold.field, hold.count) end
		if hold.count and keep and keep(name, hold.field, hold.count, hold) then return 2 end
		-- Delete the record first: a server whose memory is full allows HDEL, and after it every write of this script.
		redis.call('HDEL', name.holds, hold_id, hold_id .. STOP)
		local result = hold.count and release_one(name, hold.field, hold.count, hold) or 3
		return result == 3 and ended(hold) or result
	end
	return for_each_name(hold_id, release)
end
