-- Take the fair lock of every name, or of none: when it is free, and nobody was in the queue before us. Else
-- join the queue of every name, if it may be waited for (RedissonFairLock.tryLockInnerAsync; but by the
-- server's clock, and without a change of everybody's deadline at each acquisition).
-- KEYS     for each name: lock hash, holds hash, fence counter, Redisson's queue and deadlines, our waiters
-- ARGV     see inc/request.lua; of each name: channel
-- Returns  as plain_acquire.lua; ttl -2 when nobody holds the lock, and holder is who is next in the queue
-- include: request
local KEY_FIELDS, ARG_FIELDS = { 'lock', 'holds', 'counter', 'queue', 'deadlines', 'waiters' }, { 'channel' }
-- include: names
-- include: now
-- include: denied
-- include: reentrant_owners
-- include: replica
-- include: acquire
-- include: mutex_acquire
-- include: queue_read
-- include: queue_leave
-- include: queue_join
-- include: rights

-- Somebody looks at the queue, and may not come to join it: the time of grace runs from now on.
local function record_seen(name)
	if redis.call('EXISTS', name.waiters) == 1 then
		redis.call('HSET', name.waiters, SEEN, seen_now(name))
	end
end

-- The error when nobody can join the queue now, for lack of memory or since it could not be left again. What needs
-- memory goes first: a server that is full lets a script that has written go on.
local function join_error(name)
	return try_all({ { 'ZADD', name.deadlines, 'XX', 0, '' } }) or leave_error(name)
end

-- Finds out how this name stands; the reply to give when it is no such lock.
local function examine_queue(index, name)
	local reply = examine(index, name)
	if reply then
		return reply
	end
	if redis.call('HEXISTS', name.lock, 'mode') == 1 then
		return { -1, index, 'read/write lock' }
	end
	name.owner = holding_owner(name.lock, '')
	name.is_ours = name.owner ~= nil
	record_seen(name)
	prune(name, fresh_owner)
	-- Whoever is next may not know yet: the one before him was dead, the lock has run out, or he sleeps too
	-- long, as Redisson 3.13.6 does.
	if name.is_free then
		wake_head(name, fresh_owner)
	end
	name.head = head_of(name)
	name.owner = name.owner or fresh_owner
	name.field = name.owner
	name.is_available = name.is_ours or name.is_free
		and (not name.head or name.head == fresh_owner)
		and not is_early(name, waits_since_us)
	return nil
end

local function busy_reply(index, name, retry_after_ms, since)
	if name.is_free then
		local head = name.head or fresh_owner
		local sign = sign_of_life(name, head)
		return { 0, index, -2, head, sign and sign.note or '', retry_after_ms, since }
	end
	local holder, holder_note = holder_of(name)
	return { 0, index, redis.call('PTTL', name.lock), holder, holder_note, retry_after_ms, since }
end

local first_busy
for index, name in ipairs(names) do
	local reply = examine_queue(index, name)
	if reply then
		return replica_error(name) or reply
	end
	if not name.is_available then
		first_busy = first_busy or index
	end
end

if first_busy then
	-- Who could not leave it would stand in the way of those behind him.
	for _, name in ipairs(may_wait and not waits_since_us and names or {}) do
		local err = join_error(name)
		if err then
			return err
		end
	end
	local least_retry_after_ms, since_us = -1, waits_since_us
	for _, name in ipairs(names) do
		if may_wait and not name.is_ours then
			local retry_after_ms
			since_us, retry_after_ms = join_queue(name, fresh_owner, note, waits_since_us, listens)
			if least_retry_after_ms < 0 or retry_after_ms < least_retry_after_ms then
				least_retry_after_ms = retry_after_ms
			end
		end
	end
	return replica_error(names[1])
		or busy_reply(first_busy, names[first_busy], least_retry_after_ms, since_us and digits(since_us) or '')
end

-- The queue was deleted, by somebody else, but not this waiter's sign of life. By pcall: it would expire anyway, and is no
-- reason to fail an acquisition.
local function remove_sign_of_life(name, owner)
	redis.pcall('ZREM', name.deadlines, owner)
	redis.pcall('HDEL', name.waiters, owner)
	if redis.pcall('HLEN', name.waiters) == 1 then
		redis.pcall('HDEL', name.waiters, SEEN)
	end
end

return acquire_all(function(name)
	local taken = mutex_acquire(name)
	-- Also of a waiter that re-enters, since its owner may have acquired the lock otherwise.
	if not is_error(taken) and name.head then
		dequeue(name, fresh_owner)
	elseif not is_error(taken) and waits_since_us then
		remove_sign_of_life(name, fresh_owner)
	end
	return taken
end)
