-- The common acquisition in one piece, before all that the others need: to define that takes longer than to do this. One
-- name, of which nothing is there, no token, and no right that has to be tried. What is denied is told by the long way.
-- include: request
-- include: now
-- include: hold_record_make

local WAKE_QUEUE_ARG, TURN_ARG = FIXED_ARGS + 1, FIXED_ARGS + 2

-- add_field() adds that field to the lock, and what else only this kind has; false when one of its commands failed. Then
-- the other keys given here are deleted, too: sets of readers, and what has a TTL. The reply to give; nil when it is no
-- such case.
local function acquire_absent(field, add_field, ...)
	local lock, holds = KEYS[1], KEYS[2]
	if #KEYS > #KEY_FIELDS or want_token or tries_rights or least_uptime_ms > 0
		or redis.pcall('EXISTS', ARGV[TURN_ARG], unpack(KEYS)) ~= 0 then
		return nil
	end
	local record = hold_record_make(field, digits(now_ms()), now_ms() + lease_ms, '-', note)
	if add_field() and redis.pcall('HSET', holds, hold_id, record) == 1
		and redis.pcall('PEXPIRE', lock, lease_ms) == 1 and redis.pcall('PEXPIRE', holds, lease_ms) == 1 then
		if waits_since_us then
			redis.pcall('ZREM', ARGV[WAKE_QUEUE_ARG], hold_id)
		end
		return { 1, fresh_owner, 1, '-', 0 }
	end
	-- Not where nothing was written: a full server lets a script go on that has deleted something.
	if redis.pcall('EXISTS', lock) == 1 and type(redis.pcall('DEL', lock, holds, ...)) ~= 'number' then
		redis.pcall('HDEL', lock, field, 'mode')
		redis.pcall('HDEL', holds, hold_id)
		for _, key in ipairs({ ... }) do
			redis.pcall('ZREM', key, field)
		end
	end
	return nil
end
