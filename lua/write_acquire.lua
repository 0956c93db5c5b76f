-- Take the write lock of every name, or of none (RedissonWriteLock.tryLockInnerAsync). One who waits for
-- readers says so, and those of ours who come after him wait until he had his turn.
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV     see inc/request.lua; of each name: what its time-out keys begin with
-- Returns  as plain_acquire.lua; and
--          {-2, index}  never to be had: the owner has a read lock, and would wait for himself
-- include: request
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'writer', 'ends' }, { 'timeouts' }
-- include: names
-- include: now
-- include: denied
-- include: rights
-- include: reentrant_owners
-- include: replica
-- include: acquire
-- include: acquire_exclusive
-- include: free_if_empty
-- include: readers_expired
-- include: write_suffix

local TURN_MS = 5000 -- how long readers wait for a writer who was not heard of
local RETRY_AFTER_MS = 2000 -- how often he is heard of

-- Of several writers the one who was heard of last stands there, since when the first of them waits.
local function claim_turn(name)
	local since_us = string.match(redis.call('GET', name.writer) or '', '^(%d+) ')
	redis.call('SET', name.writer,
		(since_us or digits(now_us)) .. ' ' .. fresh_owner .. ' ' .. note, 'PX', TURN_MS)
end

-- What stands in the way; nil when nothing does.
local function obstacle(index, name)
	local reply = examine(index, name)
	if reply then
		return reply
	end
	name.owner = fresh_owner
	if not name.is_free then
		local mode = redis.call('HGET', name.lock, 'mode')
		if not mode then
			return { -1, index, 'plain or fair lock' }
		end
		name.owner = holding_owner(name.lock, WRITE)
		if not name.owner then
			for _, owner in ipairs(reentrant_owners) do
				remove_if_expired(name, owner)
			end
			remove_expired(name)
			free_if_empty(name)
		end
		if not name.owner and name.is_free then
			name.owner = fresh_owner
		elseif not name.owner then
			if holding_owner(name.lock, '') then
				return { -2, index }
			end
			local holder, holder_note = holder_of(name)
			name.has_readers = mode == 'read'
			return { 0, index, redis.call('PTTL', name.lock), holder, holder_note,
				name.has_readers and RETRY_AFTER_MS or -1, '' }
		end
	end
	name.field = name.owner .. WRITE
	return nil
end

local first_obstacle
for index, name in ipairs(names) do
	local reply = obstacle(index, name)
	if reply and reply[1] ~= 0 then
		return replica_error(name) or reply
	end
	first_obstacle = first_obstacle or reply
end
if first_obstacle then
	for _, name in ipairs(names) do
		if may_wait and name.has_readers then
			claim_turn(name)
		end
	end
	return replica_error(names[1]) or first_obstacle
end

return acquire_all(function(name)
	if not name.is_free then
		-- wire: Redisson adds the lease to what is left. We set it.
		return reenter(name)
	end
	redis.call('HSET', name.lock, 'mode', 'write')
	local err = try_all({ { 'HINCRBY', name.lock, name.field, 1 } }, {
		{ 'HDEL', name.lock, 'mode' },
		{ 'DEL', name.lock },
	})
	local taken = err or acquire_free(name, '-', {
		{ 'HGETALL', name.lock },
		{ 'ZADD', name.ends, 'XX', 0, '' },
		{ 'ZREM', name.ends, '' },
		{ 'ZRANGE', name.ends, 0, 0 },
		{ 'ZCARD', name.ends },
	})
	if not is_error(taken) then
		redis.call('DEL', name.writer)
	end
	return taken
end)
