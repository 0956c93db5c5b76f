-- The common release in one piece, before all that the others need: to define that takes longer than to do this. One permit
-- of one semaphore, for which no waiter of ours is in the wake queue.
-- include: now
-- include: send

local WAKE_QUEUE_ARG, CHANNEL_ARG = FIXED_ARGS + 1, FIXED_ARGS + 3

-- How many clients hear of it, or the error of PUBLISH. nil when it is no such case, and nothing was done.
local function release_one_permit()
	local lock, holds, ends, permits, wake_queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[WAKE_QUEUE_ARG]
	local record = #KEYS == #KEY_FIELDS and redis.pcall('HGET', holds, hold_id)
	local end_ms = type(record) == 'string' and string.match(record, '^%S+ %d+ (%d+) 1 ')
	-- A counter that is overwritten, or not there, is for the long way.
	local free = end_ms and redis.pcall('EXISTS', wake_queue) == 0 and redis.pcall('GET', lock)
	if type(free) ~= 'string' or not tonumber(free) or tonumber(end_ms) <= now_ms()
		or redis.pcall('ZREM', permits, hold_id .. ':1') ~= 1 then
		return nil
	end
	redis.call('ZREM', ends, hold_id .. ':1')
	redis.call('HDEL', holds, hold_id)
	free = redis.call('INCRBY', lock, 1)
	-- wire: RPermitExpirableSemaphore publishes how many are free.
	return free > 0 and send(channel_of(ARGV[CHANNEL_ARG]), digits(free)) or 0
end
