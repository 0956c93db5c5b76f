-- The common release in one piece, before all that the others need: to define that takes longer than to do this. The only
-- hold of a lock of one name, for which no waiter is in a queue.
-- include: hold_record
-- include: send

local WAKE_QUEUE_ARG, CHANNEL_ARG = FIXED_ARGS + 1, FIXED_ARGS + 3

-- The field of that hold in a lock with so many fields; nil when it is no such case. queue...: those besides the wake queue.
local function only_field(field_count, ...)
	local record = #KEYS == #KEY_FIELDS and redis.pcall('HGET', KEYS[2], hold_id)
	local field = type(record) == 'string' and hold_record_parse(record)
	if field and redis.pcall('HGET', KEYS[1], field) == '1' and redis.pcall('HLEN', KEYS[1]) == field_count
		and redis.pcall('EXISTS', ARGV[WAKE_QUEUE_ARG], ...) == 0 then
		return field
	end
	return nil
end

-- Deletes the lock, its holds and those keys. How many clients hear that it is free, or an error. nil when that was denied.
local function free_lock(message, ...)
	if type(redis.pcall('DEL', KEYS[1], KEYS[2], ...)) ~= 'number' then
		return nil
	end
	return send(channel_of(ARGV[CHANNEL_ARG]), message)
end
