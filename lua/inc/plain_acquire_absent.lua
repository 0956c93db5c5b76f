-- The common case in one piece, before all that the others need: to define that takes longer than to do this. One name, of
-- which nothing is there, no token, and no right that has to be tried. Whatever is denied is told by the long way.
-- include: request
-- include: now
-- include: hold_record_make

local function acquire_absent()
	local lock, holds, counter, turn = KEYS[1], KEYS[2], KEYS[3], ARGV[FIXED_ARGS + 2]
	if #KEYS > #KEY_FIELDS or want_token or tries_rights or least_uptime_ms > 0 or waits_since_us
		or redis.pcall('EXISTS', lock, holds, counter, turn) ~= 0 then
		return nil
	end
	local record = hold_record_make(fresh_owner, digits(now_ms()), now_ms() + lease_ms, '-', note)
	if redis.pcall('HINCRBY', lock, fresh_owner, 1) == 1 and redis.pcall('HSET', holds, hold_id, record) == 1
		and redis.pcall('PEXPIRE', lock, lease_ms) == 1 and redis.pcall('PEXPIRE', holds, lease_ms) == 1 then
		return { 1, fresh_owner, 1, '-', 0 }
	end
	redis.pcall('DEL', lock, holds)
	return nil
end

local granted = acquire_absent()
if granted then
	return granted
end
