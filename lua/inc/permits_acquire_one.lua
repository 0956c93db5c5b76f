-- The common acquisition in one piece, before all that the others need: to define that takes longer than to do this. One
-- permit of one semaphore, where no waiter is to be thought of, nothing to be reclaimed, and the total is the expected one.
-- include: request
-- include: now
-- include: permits

-- The reply to give; nil when it is no such case.
local function acquire_one_permit()
	local lock, holds, ends, permits, remembered = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
	local wake_queue, turn = ARGV[FIXED_ARGS + 1], ARGV[FIXED_ARGS + 2]
	if #KEYS > #KEY_FIELDS or take > 1 or asks_for_more or redis.pcall('EXISTS', wake_queue, turn) ~= 0
		or redis.pcall('GET', remembered) ~= digits(total) then
		return nil
	end
	local free, held = redis.pcall('GET', lock), redis.pcall('ZCARD', permits)
	if type(free) ~= 'string' or type(held) ~= 'number' or (tonumber(free) or 0) < 1 or free + held ~= total then
		return nil
	end
	local end_ms = now_ms() + lease_ms
	if held > 0 and redis.call('ZRANGE', permits, '-inf', digits(now_ms() + AHEAD_MS), 'BYSCORE', 'LIMIT', 0, 1)[1]
		or redis.pcall('HSET', holds, hold_id, fresh_owner .. ' ' .. digits(now_ms()) .. ' ' .. digits(end_ms) .. ' 1 ' .. note) ~= 1 then
		return nil
	end
	local id, ttl_ms = hold_id .. ':1', tonumber(lease_ms)
	local is_taken = type(redis.pcall('INCRBY', lock, -1)) == 'number'
	if held > 0 then
		ttl_ms = math.max(redis.call('PTTL', holds), ttl_ms)
	end
	if is_taken and redis.pcall('ZADD', permits, digits(end_ms + AHEAD_MS), id) == 1
		and redis.pcall('ZADD', ends, digits(end_ms), id) == 1
		and redis.pcall('PEXPIRE', holds, digits(ttl_ms)) == 1
		and redis.pcall('PEXPIRE', ends, digits(ttl_ms + AHEAD_MS + BEHIND_MS)) == 1 then
		if has_waited then
			redis.pcall('ZREM', wake_queue, hold_id)
		end
		return { 1, fresh_owner, 1, digits(total), 0 }
	end
	-- What is denied is told by the long way.
	redis.pcall('HDEL', holds, hold_id)
	redis.pcall('ZREM', permits, id)
	redis.pcall('ZREM', ends, id)
	if is_taken then
		redis.pcall('INCRBY', lock, 1)
	end
	return nil
end
