-- The common renewal in one piece, before all that the others need: to define that takes longer than to do this. A hold of
-- one name, whose lock would expire earlier without it.
-- include: kept_hold

local RENEWED = 0 -- the reply

-- Whether it is such a case, and done: lock and holds then last for lease_ms. With suffix: only of an owner that has it.
-- Records are as hold_record.lua parses them.
local function renew_only(suffix)
	local lock, holds = KEYS[1], KEYS[2]
	local record = redis.pcall('HGET', holds, hold_id)
	if type(record) ~= 'string' then
		return false
	end
	local field, since_ms, end_ms, rest = string.match(record, '^(%S+)( %d+ )(%d+)(.*)$')
	if not field or string.sub(field, #field - #suffix + 1) ~= suffix or string.find(field, KEPT, 1, true)
		or redis.pcall('HEXISTS', lock, field) ~= 1 then
		return false
	end
	local ttl_ms = redis.call('PTTL', lock)
	local now = redis.call('TIME')
	local least_end_ms = now[1] * 1000 + now[2] / 1000 + lease_ms
	if ttl_ms - lease_ms >= 0 or end_ms - least_end_ms > 0 then
		return false
	end
	-- %d cuts fractions off, and has enough bits for these parts on each server.
	local extended = field .. since_ms .. string.format('%d%03d', least_end_ms / 1000, least_end_ms % 1000) .. rest
	-- The record last: on a full server a script may write it when it has written before.
	return redis.pcall('PEXPIRE', lock, lease_ms) == 1 and redis.pcall('PEXPIRE', holds, lease_ms) == 1
		and redis.pcall('HSET', holds, hold_id, extended) == 0
end
