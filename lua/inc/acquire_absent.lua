-- The common acquisition in one piece, before all that the others need: to define that takes longer than to do this. One
-- name, of which nothing is there but a fence counter, and no right that has to be tried. What is denied is told by the
-- long way. Numbers in commands are text here: Redis takes longer to make text of one than to look up a key. So it does to
-- make a reply of a table.
-- Before it stand KEY_COUNT, how many keys a name has; counter, that of its tokens, or nil; turn, a key that is not there
-- either.
-- include: request

local WAKE_QUEUE_ARG = FIXED_ARGS + 1
local ACQUIRED = 1 -- the reply where no token was issued

-- Whether nothing is there, but the counter maybe; and the token, if one is to be issued.
local function issue_first_token()
	local there = redis.pcall('EXISTS', turn, unpack(KEYS))
	local is_counted = there == 1 and counter and redis.pcall('EXISTS', counter) == 1
	if there ~= 0 and not is_counted then
		return false
	elseif not is_counted and not want_token then
		return true
	end
	-- As text: a number in a script has 53 bits only.
	local token = type(redis.pcall('INCR', counter)) == 'number' and redis.pcall('GET', counter)
	return type(token) == 'string', token
end

-- add_field(end_ms) adds that field to the lock, and what else only this kind has, when its lease ends then; false when one
-- of its commands failed. Then the other keys given here are deleted, too: sets of readers, and what has a TTL. The reply to
-- give; nil when it is no such case.
local function acquire_absent(field, add_field, ...)
	local lock, holds = KEYS[1], KEYS[2]
	if asks_for_more or #KEYS > KEY_COUNT or want_token and not counter then
		return nil
	end
	local is_absent, token = issue_first_token()
	if not is_absent then
		return nil
	end
	local now = redis.call('TIME')
	local since_ms = now[2] / 1000 -- of this second
	local end_ms = now[1] * 1000 + since_ms + lease_ms
	-- As hold_record_make.lua would write it. %d cuts fractions off, and has enough bits for these parts on each server.
	local record = field .. string.format(' %s%03d %d%03d %s ', now[1], since_ms, end_ms / 1000, end_ms % 1000,
		token or '-') .. note
	if add_field(end_ms) and redis.pcall('HSET', holds, hold_id, record) == 1
		and redis.pcall('PEXPIRE', lock, lease_ms) == 1 and redis.pcall('PEXPIRE', holds, lease_ms) == 1 then
		if has_waited then
			redis.pcall('ZREM', ARGV[WAKE_QUEUE_ARG], hold_id)
		end
		return token and { 1, fresh_owner, 1, token, 0 } or ACQUIRED
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
