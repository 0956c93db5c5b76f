-- The fast path of a release, for a request with one name whose lock has no other hold. This code comes before the functions that
-- other cases need: to define them takes longer than the release. The script sets kept_ms, hold_id, WAKE_QUEUE_ARG and
-- CHANNEL_ARG.

-- include: channels

-- The field of the hold, and whether the wake queue has a waiter. nil: the slow path must release the hold, for one of these
-- reasons: the request has several names; the hold must be kept or remembered; the owner has no hold or several; the lock hash
-- has not exactly field_count fields; the key `queue` exists; or a command failed.
local function only_field(field_count, queue)
	local record = #KEYS == #KEY_FIELDS and kept_ms == '0' and hold_id == ARGV[1] and redis.pcall('HGET', KEYS[2], hold_id)
	local field = type(record) == 'string' and string.match(record, '^(%S+) %d+ ')
	if not field or redis.pcall('HGET', KEYS[1], field) ~= '1' then return nil end
	if redis.pcall('HLEN', KEYS[1]) ~= field_count then return nil end
	local queues = redis.pcall('EXISTS', queue, ARGV[WAKE_QUEUE_ARG])
	if queues == 0 or redis.pcall('EXISTS', queue) == 0 then return field, queues ~= 0 end
	return nil
end

-- Delete the lock, its holds and the keys after `message`, and publish the message. Return how many clients have received it, or
-- the error of PUBLISH. nil: the deletion was denied.
local function free_lock(message, ...)
	if type(redis.pcall('DEL', KEYS[1], KEYS[2], ...)) ~= 'number' then return nil end
	return send(channel_of(ARGV[CHANNEL_ARG]), message)
end
