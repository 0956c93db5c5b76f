-- Release the permits of a hold, for every name, or keep them until some time, as plain_release.lua does. A release must
-- succeed on a server whose memory is full. So its first write needs no memory: after that, such a server lets the script write
-- more.
-- Redisson RedissonPermitExpirableSemaphore.tryReleaseAsync
-- KEYS     for each name: counter, holds hash, ends of our permits, permits
-- ARGV[1]  hold id; with --remember "HOLD_ID TTL_MS KIND END", see inc/last.lua
-- ARGV[2]  how long to keep the permits, in ms; 0: release them
-- ARGV[3+] for each name: wake queue, turn, channel. The wake queue and the turn are not in KEYS, so a user without a right to
--          them can still release
-- Returns  2  the request has one name, and its permit was released
--          {result, ...}  one for each name: see inc/results.lua

local FIXED_ARGS = 2

-- The fast path releases one permit of one name, if no waiter of ours is in the wake queue. All other cases take the slow path.
local KEY_COUNT, WAKE_QUEUE_ARG, CHANNEL_ARG = 4, FIXED_ARGS + 1, FIXED_ARGS + 3

-- include: suffix
-- include: slots

local hold_id, kept_ms = string.match(ARGV[1], '^%S+'), ARGV[2]

-- The number of free permits after the release; nil: the slow path has to release the hold, and nothing was changed.
local free
-- EXISTS counts a key each time it is named: 2 means that the counter exists, and no wake queue.
if #KEYS == KEY_COUNT and kept_ms == '0' and hold_id == ARGV[1]
	and redis.pcall('EXISTS', KEYS[1], KEYS[1], ARGV[WAKE_QUEUE_ARG]) == 2 then
	local lock, holds, ends, permits, id = KEYS[1], KEYS[2], KEYS[3], KEYS[4], hold_id .. ':1'
	local record = redis.pcall('HGET', holds, hold_id)
	local owner, end_ms, slot = string.match(type(record) == 'string' and record or '', '^(%S+) %d+ (%d+) 1:(%d+) ')
	local now = end_ms and redis.call('TIME')
	local raised = now and end_ms * 1000 > now[1] * 1000000 + now[2] and redis.pcall('INCRBY', lock, '1')
	if type(raised) == 'number' and redis.pcall('ZREM', permits, id) == 1 then
		-- Use pcall from here on: the permit is released, so waiters must be notified even if a key was overwritten or a command
		-- is denied.
		redis.pcall('ZREM', ends, id)
		local in_use = known_slots(holds)
		in_use = in_use and without_slot(in_use, tonumber(slot))
		if in_use then
			redis.pcall('HDEL', holds, hold_id, hold_id .. STOP, owner .. LAST)
			if type(redis.pcall('HSET', holds, SLOTS, in_use)) ~= 'number' then redis.pcall('HDEL', holds, SLOTS) end
		else
			redis.pcall('HDEL', holds, hold_id, hold_id .. STOP, owner .. LAST, SLOTS)
		end
		free = raised
	elseif type(raised) == 'number' then
		redis.call('INCRBY', lock, '-1')
	end
end
-- How many clients have received the message, or the error of PUBLISH. 0: no permit is free, so no message is sent. A false
-- value: the slow path has to release the hold; or the server is a node of a cluster, where channels.lua publishes in two ways.
local heard = free and free <= 0 and 0
-- wire: RPermitExpirableSemaphore publishes the number of free permits.
if free and free > 0 and string.sub(ARGV[CHANNEL_ARG], 1, 1) ~= '+' then
	heard = redis.pcall('PUBLISH', ARGV[CHANNEL_ARG], string.format('%d', free))
end

if heard == 0 then return 2 end

local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'ends', 'permits' }, { 'wake_queue', 'turn', 'channel' }

-- include: names
-- include: permits_release

if free then
	heard = heard or send(names[1].channel, digits(free))
	if not is_error(heard) then give_redisson_turn(names[1], heard) end
	return { is_error(heard) and command_error('PUBLISH', heard) or 2 }
end

-- include: permits_keep
-- include: last

remember_holds(ARGV[1], kept_ms)
return for_each_name(hold_id, keep_or_release)
