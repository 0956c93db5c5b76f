-- The part that all releases of locks have in common.

-- include: suffix
-- include: record
-- include: kept
-- include: lock_fields
-- include: value
-- include: results

-- Releases: of the only hold, and the frame of all others.

-- What its record says, and count: how many holds its owner has on the lock. nil when there is no such hold; then
-- name.overwritten may be set. count is nil when its owner has the lock no longer, or the record is none.
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

-- One hold less of an owner that has so many.
local function remove_one(name, field, count)
	if count > 1 then return redis.call('HINCRBY', name.lock, field, -1) end
	redis.call('HDEL', name.lock, field)
end

-- Releases a hold by release_one(name, field, count, hold), on every name. prepare(name, field, count) comes before anything is
-- changed. keep, called as release_one, is false, and changes nothing, where the hold is to be released all the same. It overwrites
-- the record: while the slot of the lock moves to another node a hash that is deleted can't be made again.
local function release_all(hold_id, release_one, prepare, keep)
	local function release(name)
		local hold = find_hold(name, hold_id)
		if not hold then return 0 end
		if hold.count and prepare then prepare(name, hold.field, hold.count) end
		if hold.count and keep and keep(name, hold.field, hold.count, hold) then return 2 end
		-- The first write, and one that a full server allows; it then allows those after it, too.
		redis.call('HDEL', name.holds, hold_id, hold_id .. STOP)
		local result = hold.count and release_one(name, hold.field, hold.count, hold) or 3
		return result == 3 and ended(hold) or result
	end
	return for_each_name(hold_id, release)
end
