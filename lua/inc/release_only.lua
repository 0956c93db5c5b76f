-- The common release in one piece, before all that the others need: to define that takes longer than to do this. The only
-- hold of a lock of one name, for which no waiter is in a queue, outside of a cluster.
-- include: hold_record

-- The field of that hold in a lock with so many fields; nil when it is no such case.
local function only_field(field_count)
	local record = #KEYS == #KEY_FIELDS and string.sub(ARGV[CHANNEL_ARG], 1, 1) ~= '+'
		and redis.pcall('HGET', KEYS[2], hold_id)
	local field = type(record) == 'string' and hold_record_parse(record)
	if field and redis.pcall('HGET', KEYS[1], field) == '1' and redis.pcall('HLEN', KEYS[1]) == field_count then
		return field
	end
	return nil
end

-- How many clients hear that the lock is free, or an error. nil when it could not be deleted.
local function free_lock(message, ...)
	if type(redis.pcall('DEL', KEYS[1], KEYS[2], ...)) ~= 'number' then
		return nil
	end
	return redis.pcall('PUBLISH', ARGV[CHANNEL_ARG], message)
end
