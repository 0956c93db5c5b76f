-- The common release in a straight line, before all that the others need: to define that takes longer than to do this, as
-- acquire_absent.lua says. One permit of one semaphore, for which no waiter of ours is in the wake queue.

local KEY_COUNT, WAKE_QUEUE_ARG, CHANNEL_ARG = 4, FIXED_ARGS + 1, FIXED_ARGS + 3

-- So many are free when that is done. nil when it is no such case, and nothing was done.
local free
-- A key counts as often as it is named: 2 says that the counter is there, and no waiter.
if #KEYS == KEY_COUNT and redis.pcall('EXISTS', KEYS[1], KEYS[1], ARGV[WAKE_QUEUE_ARG]) == 2 then
	local lock, holds, ends, permits, id = KEYS[1], KEYS[2], KEYS[3], KEYS[4], hold_id .. ':1'
	local record = redis.pcall('HGET', holds, hold_id)
	local end_ms = type(record) == 'string' and string.match(record, '^%S+ %d+ (%d+) 1 ')
	local now = end_ms and redis.call('TIME')
	local raised = now and end_ms * 1000 > now[1] * 1000000 + now[2] and redis.pcall('INCRBY', lock, '1')
	if type(raised) == 'number' and redis.pcall('ZREM', permits, id) == 1 then
		-- A user may have overwritten it: no obstacle.
		redis.pcall('ZREM', ends, id)
		redis.call('HDEL', holds, hold_id)
		free = raised
	elseif type(raised) == 'number' then
		redis.call('INCRBY', lock, '-1')
	end
end
-- How many clients hear of it, or the error of PUBLISH. nil: to be published in both ways of a cluster, see send.lua.
local heard = free and free <= 0 and 0
-- wire: RPermitExpirableSemaphore publishes how many are free.
if free and free > 0 and string.sub(ARGV[CHANNEL_ARG], 1, 1) ~= '+' then
	heard = redis.pcall('PUBLISH', ARGV[CHANNEL_ARG], string.format('%d', free))
end
