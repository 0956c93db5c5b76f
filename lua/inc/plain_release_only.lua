-- The common case in one piece, before all that the others need: to define that takes longer than to do this. The only hold
-- of a lock of one name, for which no waiter is in a queue, outside of a cluster.
-- include: hold_record

local function release_only()
	local lock, holds, queue, wake_queue, channel = KEYS[1], KEYS[2], KEYS[3], ARGV[FIXED_ARGS + 1], ARGV[#ARGV]
	local record = #KEYS == #KEY_FIELDS and string.sub(channel, 1, 1) ~= '+' and redis.pcall('HGET', holds, hold_id)
	local owner = type(record) == 'string' and hold_record_parse(record)
	if not owner or redis.pcall('HGET', lock, owner) ~= '1' or redis.pcall('HLEN', lock) ~= 1
		or redis.pcall('EXISTS', queue, wake_queue) ~= 0 or redis.pcall('DEL', lock, holds) ~= 2 then
		return nil
	end
	return redis.pcall('PUBLISH', channel, '0')
end

local heard_release = release_only()
if heard_release == 0 then
	return { 2 }
end
