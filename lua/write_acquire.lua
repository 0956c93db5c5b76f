-- Acquire the write lock of every name, or of none (RedissonWriteLock.tryLockInnerAsync). A writer that waits for
-- readers claims the next turn: readers of ours that come after it wait until it had that turn.
-- KEYS     for each name: lock hash, holds hash, waiting writer, ends of our readers
-- ARGV     see inc/request.lua; of each name: what its time-out keys begin with
-- Returns  as plain_acquire.lua; and
--          {-2, index}  deadlock: the owner has a read lock, and would wait for its own release
-- include: request
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'writer', 'ends' }, { 'timeouts' }
-- include: names
-- include: now
-- include: denied
-- include: rights
-- include: reentrant_owners
-- include: holder
-- include: examine
-- include: replica
-- include: acquire
-- include: acquire_exclusive
-- include: readwrite_acquire
-- include: write_suffix
-- include: readers_expired

local TURN_MS = 5000 -- how long readers wait for a writer that gave no sign of life
local RETRY_AFTER_MS = 2000 -- so often it gives one

-- Of several writers the key names the last one that claimed the turn, and since when the first of them waits.
local function claim_turn(name)
	local since_us = string.match(redis.call('GET', name.writer) or '', '^(%d+) ')
	redis.call('SET', name.writer,
		(since_us or digits(now_us())) .. ' ' .. fresh_owner .. ' ' .. note, 'PX', TURN_MS)
end

-- The reply to give when a lock that is not free can't be acquired; else nil. Sets name.owner.
local function obstacle_if_held(index, name)
	local mode = redis.call('HGET', name.lock, 'mode')
	if not mode then
		return { -1, index, MUTEX_LOCK }
	end
	name.owner = holding_owner(name.lock, WRITE)
	if name.owner then
		return nil
	end
	for _, owner in ipairs(reentrant_owners) do
		remove_if_expired(name, owner)
	end
	remove_expired(name)
	free_if_empty(name)
	if name.is_free then
		name.owner = fresh_owner
		return nil
	elseif holding_owner(name.lock, '') then
		return { -2, index }
	end
	local holder, holder_note = holder_of(name)
	local retry_after_ms = -1
	if mode == 'read' then
		name.has_readers = true
		retry_after_ms = RETRY_AFTER_MS
	end
	return { 0, index, redis.call('PTTL', name.lock), holder, holder_note, retry_after_ms, '' }
end

-- The reply to give when this name can't be acquired; else nil.
local function obstacle(index, name)
	local reply = examine(index, name)
	name.owner = fresh_owner
	if not reply and not name.is_free then
		reply = obstacle_if_held(index, name)
	end
	if not reply then
		name.field = name.owner .. WRITE
	end
	return reply
end

local function acquire_write(name)
	if not name.is_free then
		-- wire: Redisson adds the lease to the TTL. We set it.
		return reenter(name)
	end
	redis.call('HSET', name.lock, 'mode', 'write')
	local err = try_all({ { 'HINCRBY', name.lock, name.field, 1 } }, {
		{ 'HDEL', name.lock, 'mode' },
		{ 'DEL', name.lock },
	})
	if err then
		return err
	end
	local acquired = acquire_free(name, NO_TOKEN, {
		{ 'HGETALL', name.lock },
		{ 'ZADD', name.ends, 'XX', 0, '' },
		{ 'ZREM', name.ends, '' },
		{ 'ZRANGE', name.ends, 0, 0 },
		{ 'ZCARD', name.ends },
	})
	if not is_error(acquired) then
		redis.call('DEL', name.writer)
	end
	return acquired
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
return acquire_all(acquire_write)
