-- The common release in one piece: the only hold of a lock of one name. It stands before all that the other cases need,
-- since to define that takes longer than to do this. The script says where its arguments are.

-- include: channels

-- The field of the hold, and whether a waiter is in the wake queue. nil unless the lock has field_count fields, no waiter is in
-- queue, and the hold is neither to be kept nor to be remembered.
local function only_field(field_count, queue)
	local record = #KEYS == #KEY_FIELDS and kept_ms == '0' and hold_id == ARGV[1] and redis.pcall('HGET', KEYS[2], hold_id)
	local field = type(record) == 'string' and string.match(record, '^(%S+) %d+ ')
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
