-- The common acquisition of a semaphore, as acquire_absent.lua is that of a lock: one permit of one name, with no waiter,
-- nothing to reclaim, and the expected total. All else, and what is denied, goes the long way.
-- include: request
-- include: permits

local KEY_COUNT, WAKE_QUEUE_ARG, TURN_ARG = 5, FIXED_ARGS + 1, FIXED_ARGS + 2

if take == '1' and #KEYS == KEY_COUNT and not asks_for_more then
	local lock, holds, ends, permits, remembered = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
	-- EXISTS counts a key as often as it is named: 3 says that the counter is there, and nothing else.
	local held = redis.pcall('EXISTS', lock, lock, lock, ARGV[WAKE_QUEUE_ARG], ARGV[TURN_ARG]) == 3
		and redis.pcall('GET', remembered) == total and redis.pcall('ZCARD', permits)
	if type(held) == 'number' and held < tonumber(total) then
		local now = redis.call('TIME')
		local since_text = now[1] .. string.sub('00000' .. now[2], -6, -4)
		local end_ms = since_text + lease_ms
		local is_due = held > 0 and redis.call('ZRANGE', permits, '-inf',
			since_text + AHEAD_MS .. '', 'BYSCORE', 'LIMIT', 0, 1)[1]
		local free = not is_due and redis.pcall('INCRBY', lock, '-1')
		if type(free) == 'number' then
			local id, is_new = hold_id .. ':1', false
			local end_text = end_ms .. '' -- as text, see acquire_absent.lua
			local ttl_ms = held > 0 and redis.pcall('PTTL', holds) or lease_ms
			if free >= 0 and free + 1 + held == tonumber(total) and (held == 0 or type(ttl_ms) == 'number') then
				-- The record of a hold that has its permit stays as it is: the hold may be kept until some time.
				is_new = redis.pcall('ZADD', permits, 'NX', end_ms + AHEAD_MS .. '', id) == 1
			end
			ttl_ms = is_new and math.max(ttl_ms, lease_ms)
			if is_new and type(redis.pcall('HSET', holds, hold_id, fresh_owner .. ' ' .. since_text .. ' ' .. end_text .. ' 1 ' .. note)) == 'number'
				and redis.pcall('ZADD', ends, end_text, id) == 1 and redis.pcall('PEXPIRE', holds, ttl_ms) == 1
				and redis.pcall('PEXPIRE', ends, ttl_ms + AHEAD_MS + BEHIND_MS .. '') == 1 then
				return 1
			end
			redis.pcall('INCRBY', lock, '1')
			if is_new then
				redis.pcall('HDEL', holds, hold_id)
				redis.pcall('ZREM', permits, id)
				redis.pcall('ZREM', ends, id)
			end
		end
	end
end
