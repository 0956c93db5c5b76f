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

-- The common release in one piece: the only hold of a lock of one name. It stands before all that the other cases need,
-- since to define that takes longer than to do this. The script says where its arguments are.

-- The field of the hold, and whether a waiter is in the wake queue. nil unless the lock has field_count fields, no waiter is in
-- queue, and the hold is neither to be kept nor to be remembered.
local function only_field(field_count, queue)
	local record = #KEYS == #KEY_FIELDS and kept_ms == '0' and hold_id == ARGV[1] and redis.pcall('HGET', KEYS[2], hold_id)
	local field = type(record) == 'string' and hold_record_parse(record)
	if not field or redis.pcall('HGET', KEYS[1], field) ~= '1' then return nil end
	if redis.pcall('HLEN', KEYS[1]) ~= field_count then return nil end
	local queues = redis.pcall('EXISTS', queue, ARGV[WAKE_QUEUE_ARG])
	if queues == 0 or redis.pcall('EXISTS', queue) == 0 then return field, queues ~= 0 end
	return nil
end

-- Deletes the lock, its holds and those keys. How many clients hear that it is free, or an error. nil when that was denied.
local function free_lock(message, ...)
	if type(redis.pcall('DEL', KEYS[1], KEYS[2], ...)) ~= 'number' then return nil end
	return send(channel_of(ARGV[CHANNEL_ARG]), message)
end

-- The end of a common release (inc/release.lua) for which other clients wait, or whose message was denied.
-- The result for the name, as in inc/names.lua.
local function freed(name, heard)
	if not is_error(heard) then give_others_turn(name, heard) end
	wake_next(name)
	return is_error(heard) and command_error('PUBLISH', heard) or 2
end
